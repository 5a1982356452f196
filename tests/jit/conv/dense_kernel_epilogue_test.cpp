// SPDX-License-Identifier: Apache-2.0
// Epilogues in the inner kernel of convolutions, in every tile that fits: results of 8 bits, which
// are packed across vectors and channels, beside one of 32 bits, and a residual in place.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "ir/text/text.hpp"
#include "jit/conv/dense/tile_spec.hpp"
#include "jit/memory/code_memory.hpp"
#include "tests/support/conversions.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::jit {
namespace {

/// %y in the memory of the residual %r, %z and %t of the sums less it.
constexpr std::string_view text =
    "func @f(%x: u8[1, 3, 5, 6], %w: i8[24, 3, 1, 1], %b: i32[24, 1, 1], %r: u8[1, 24, 5, 6]) -> "
    "(u8[1, 24, 5, 6], i32[1, 24, 5, 6], i8[1, 24, 5, 6]) {\n"
    "  %c = conv_integer %x, %w\n  %s = add %c, %b\n  %d = convert %r : i32\n"
    "  %e = add %s, %d\n  %y = convert %e {overflow = saturate} : u8\n  %z = sub %s, %d\n"
    "  %t = convert %z {overflow = saturate} : i8\n  return %y, %z, %t\n}\n";

/// The function after the convolution, and which operand of it is which value.
struct Behind {
  FunctionPtr function;
  std::vector<Nest> nests;
  std::optional<TileEpilogue> epilogue;

  explicit Behind(const Target& target)
      : function(std::move(parse_function(text)).value()), nests(plan_nests(*function, target)) {
    if (nests.size() != 2 || !nests.back().epilogue) return;
    epilogue = likely_tile_epilogue(*function, nests.back(), target);
  }

  const std::string& name_of(size_t operand) const {
    const Nest& nest = nests.back();
    const ValueId value = operand < nest.inputs.size()
                              ? nest.inputs[operand].value
                              : nest.outputs[operand - nest.inputs.size()].value;
    return function->values[value].name;
  }
};

/// A tensor of the test, whose rows end at a page that nobody may touch.
template <class T>
class Rows {
 public:
  Rows(int channels, int pitch) : pitch_(pitch), pages_(size(channels)) {
    data_ = reinterpret_cast<T*>(pages_.at_end(size(channels)));
    pages_.fill(std::byte{0x5a});
  }
  T& at(int channel, int pixel) { return data_[channel * pitch_ + pixel]; }
  EpilogueOperand operand() {
    return {static_cast<int64_t>(reinterpret_cast<uintptr_t>(data_)),
            static_cast<int64_t>(sizeof(T)) * pitch_};
  }

 private:
  size_t size(int channels) const { return sizeof(T) * static_cast<size_t>(channels * pitch_); }

  int pitch_;
  test::GuardedPages pages_;
  T* data_;
};

template <class To>
To saturated(int64_t value) {
  return static_cast<To>(
      std::clamp<int64_t>(value, std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
}

/// One call on two tiles, of whose last vector `left_out` lanes are not stored.
void check_tile(const DenseTile& tile, const Behind& of, const KernelFunction<DenseTile> run,
                int left_out, std::mt19937_64& random) {
  constexpr int tiles = 2;
  constexpr int lanes = 16;
  const int vectors = tiles * tile.vectors;
  const int pixels = vectors * lanes - left_out;
  std::vector<int32_t> planes(static_cast<size_t>(vectors * lanes));
  for (int32_t& dword : planes) dword = static_cast<int32_t>(random());
  std::vector<int32_t> weights, start, bias;
  for (int m = 0; m < tile.channels; ++m) {
    weights.push_back(((m % 5 - 2) & 0xff) | (m % 2) << 8);  // weights of the first two bytes
    start.push_back(static_cast<int32_t>(random() % 600) - 300);
    bias.push_back(static_cast<int32_t>(random() % 600) - 300);
  }
  std::vector<ConvStore> stores(static_cast<size_t>(vectors));
  for (int i = 0; i < vectors; ++i) {
    ConvStore& store = stores[static_cast<size_t>(i)];
    store.pixel = int64_t{16} * i;
    store.source = 4 * store.pixel;
    store.lanes = 0xffffu >> (i + 1 == vectors ? left_out : 0);
    store.first_lanes = store.lanes;
  }
  Rows<uint8_t> y(tile.channels, pixels);
  Rows<int32_t> z(tile.channels, pixels);
  Rows<int8_t> t(tile.channels, pixels);
  std::vector<uint8_t> residual;
  for (int m = 0; m < tile.channels; ++m) {
    for (int pixel = 0; pixel < pixels; ++pixel) {
      residual.push_back(y.at(m, pixel) = static_cast<uint8_t>(random()));
    }
  }
  std::vector<EpilogueOperand> operands(of.nests.back().operands());
  for (size_t k = 0; k < operands.size(); ++k) {
    const std::string& name = of.name_of(k);
    if (name == "r" || name == "y") operands[k] = y.operand();
    if (name == "z") operands[k] = z.operand();
    if (name == "t") operands[k] = t.operand();
    if (name == "b")
      operands[k] = {static_cast<int64_t>(reinterpret_cast<uintptr_t>(bias.data())), 4};
  }
  const int32_t tap = 0;
  const DenseArguments arguments = {.source = reinterpret_cast<const std::byte*>(planes.data()),
                                    .k_steps = &tap,
                                    .k_step_count = 1,
                                    .weights = reinterpret_cast<const std::byte*>(weights.data()),
                                    .start = start.data(),
                                    .stores = stores.data(),
                                    .epilogue = operands.data(),
                                    .tiles = tiles};
  run(&arguments);
  for (int m = 0; m < tile.channels; ++m) {
    for (int pixel = 0; pixel < pixels; ++pixel) {
      const auto dword = static_cast<uint32_t>(planes[static_cast<size_t>(pixel)]);
      const int64_t first = dword & 0xff;
      const int64_t second = dword >> 8 & 0xff;
      const auto channel = static_cast<size_t>(m);
      const int8_t weight = static_cast<int8_t>(weights[channel]);
      const int8_t other = static_cast<int8_t>(weights[channel] >> 8);
      const int64_t sum = start[channel] + bias[channel] + first * weight + second * other;
      const int64_t r = residual[static_cast<size_t>(m * pixels + pixel)];
      const auto where = [&] {
        return fmt::format("{} by {}, {} left out: channel {}, pixel {}", tile.channels,
                           tile.vectors, left_out, m, pixel);
      };
      ASSERT_EQ(y.at(m, pixel), saturated<uint8_t>(sum + r)) << where();
      ASSERT_EQ(z.at(m, pixel), sum - r) << where();
      ASSERT_EQ(t.at(m, pixel), saturated<int8_t>(sum - r)) << where();
    }
  }
}

TEST(ConvKernelEpilogues, EveryTile) {
  std::mt19937_64 random(3);
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    const Target target{tier};
    if (product_engine_of(target) != ProductEngine::u8_i8_dot || !target.has_avx512()) continue;
    const Behind of(target);
    ASSERT_TRUE(of.epilogue) << jit::name_of(tier);
    for (int channels = 1; channels <= 28; ++channels) {
      for (int vectors = 1; vectors <= 28; ++vectors) {
        const DenseTile tile = {.channels = channels, .vectors = vectors};
        if (!fits(tile, target)) continue;
        CodeMemory memory;
        const auto code = emit_kernel(tile, target, &*of.epilogue);
        ASSERT_TRUE(code.ok()) << code.error().to_string();
        const auto block = memory.publish(*code);
        ASSERT_TRUE(block.ok());
        const auto run =
            reinterpret_cast<KernelFunction<DenseTile>>(reinterpret_cast<uintptr_t>(block->code()));
        for (const int left_out : {0, 5}) {
          check_tile(tile, of, run, left_out, random);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace castor::jit
