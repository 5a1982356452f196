// SPDX-License-Identifier: Apache-2.0
// Epilogues in the kernels of convolutions: which functions kernels can apply, and code that
// belongs to its tier and stays small in every tile.
#include "jit/conv/epilogue/epilogue.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/text/text.hpp"
#include "jit/conv/dense/tile_spec.hpp"
#include "tests/support/kernel_code.hpp"

namespace castor::jit {
namespace {

/// A function after a convolution to %c: i32[1, 24, 5, 6], or the same channels last.
struct Row {
  std::string_view name;
  std::string_view parameters;  ///< beside x and w
  std::string_view operations;  ///< from %c to %y
  std::string_view type;        ///< %y's
  bool applies;                 ///< on AVX-512 tiers
};

constexpr Row rows[] = {
    {"dequantize", "%s: f32[24, 1, 1], %b: f32[24, 1, 1]",
     "%f = convert %c : f32\n%m = mul %f, %s\n%a = add %m, %b\n%y = relu %a", "f32", true},
    {"requantize", "%s: f32[24, 1, 1]",
     "%f = convert %c : f32\n%m = mul %f, %s\n"
     "%y = convert %m {overflow = saturate, rounding = nearest_even} : u8",
     "u8", true},
    {"residual", "%r: f16[1, 24, 5, 6]",
     "%f = convert %c : f32\n%g = convert %r : f32\n%a = add %f, %g\n%y = convert %a : bf16",
     "bf16", true},
    {"scalar", "%s: i32[]", "%y = add %c, %s", "i32", true},
    {"f8", "%s: f32[]", "%f = convert %c : f32\n%m = mul %f, %s\n%y = convert %m : f8e4m3",
     "f8e4m3", true},
    {"f64", "%s: f64[]", "%f = convert %c : f64\n%y = mul %f, %s", "f64", false},
    {"sub-byte", "%s: f32[]", "%f = convert %c : f32\n%m = mul %f, %s\n%y = convert %m : i4", "i4",
     false},
    {"lane by lane", "%r: i32[1, 24, 5, 6]", "%y = mod %c, %r", "i32", false},
    {"scales of f16", "%s: f16[24, 1, 1]",
     "%f = convert %c : f32\n%g = convert %s : f32\n%y = mul %f, %g", "f32", true},
    {"a zero point of u8", "%s: u8[]", "%g = convert %s : i32\n%y = add %c, %g", "i32", true},
    {"scales of i4", "%s: i4[24, 1, 1]", "%g = convert %s : i32\n%y = mul %c, %g", "i32", false},
    {"seven tensors",
     "%0: i32[1, 24, 5, 6], %1: i32[1, 24, 5, 6], %2: i32[1, 24, 5, 6], %3: i32[1, 24, 5, 6], "
     "%4: i32[1, 24, 5, 6], %5: i32[1, 24, 5, 6]",
     "%a = add %c, %0\n%b = add %a, %1\n%d = add %b, %2\n%e = add %d, %3\n%f = add %e, %4\n"
     "%y = add %f, %5",
     "i32", false},
};

std::optional<TileEpilogue> epilogue_of(const Row& row, const Target& target) {
  const std::string text = fmt::format(
      "func @f(%x: u8[1, 3, 5, 6], %w: i8[24, 3, 1, 1], {}) -> {}[1, 24, 5, 6] {{\n"
      "%c = conv_integer %x, %w\n{}\nreturn %y\n}}\n",
      row.parameters, row.type, row.operations);
  const auto functions = parse(text);
  EXPECT_TRUE(functions.ok()) << row.name << ": " << functions.error().to_string();
  if (!functions.ok()) return std::nullopt;
  const Function& function = *functions->front();
  const std::vector<Nest> nests = plan_nests(function, target);
  if (nests.size() != 2 || !nests[1].epilogue) return std::nullopt;
  return likely_tile_epilogue(function, nests[1], target);
}

class TileEpilogues : public testing::TestWithParam<Tier> {};

TEST_P(TileEpilogues, KernelsApplyWhatTheyCan) {
  const Target target{GetParam()};
  for (const Row& row : rows) {
    EXPECT_EQ(epilogue_of(row, target).has_value(), row.applies && target.has_avx512()) << row.name;
  }
}

TEST_P(TileEpilogues, CodeBelongsToTheTierAndStaysSmall) {
  const Target target{GetParam()};
  for (const Row& row : rows) {
    const std::optional<TileEpilogue> epilogue = epilogue_of(row, target);
    if (!epilogue) continue;
    const ProductEngine engine = product_engine_of(target);
    for (const DenseTile& tile :
         {DenseTile{.engine = engine, .channels = 14, .vectors = 2},
          DenseTile{.engine = engine, .channels = 9, .vectors = 3}, DenseTile{.engine = engine},
          DenseTile{.engine = engine,
          .channels = 2,
          .vectors = 8,
          .window_sums = WindowSums::i32,
          .store = StorePolicy::compressed}}) {
      test::check_kernel_code([&] { return emit_kernel(tile, target, &*epilogue); }, target,
                              row.name);
      if (HasFatalFailure()) return;
    }
    for (const StorePolicy store : {StorePolicy::rows, StorePolicy::transposed}) {
      for (const int channels : {1, 17, 31, 32, 48}) {
        const DenseTile tile = {.vectorised = Vectorised::channels,
                                .engine = engine,
                                .channels = channels,
                                .columns = channels > 32 ? 9 : 14,
                                .store = store};
        test::check_kernel_code([&] { return emit_kernel(tile, target, &*epilogue); }, target,
                                row.name);
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, TileEpilogues, testing::ValuesIn(test::all_tiers),
                         test::name_of_row);

}  // namespace
}  // namespace castor::jit
