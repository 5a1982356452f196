// SPDX-License-Identifier: Apache-2.0
// Packing of weights against a loop over the definition: on every tier, in tiles of every width,
// between pages that nobody may touch.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "jit/listing/listing.hpp"
#include "jit/memory/code_memory.hpp"
#include "runtime/conv/dense.hpp"
#include "tests/support/kernel_code.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::detail {
namespace {

/// Calls visit(unit) for all units that there is code for.
template <class Visit>
void for_each_unit(Visit visit) {
  const jit::Target target{jit::Tier::avx512_vbmi};
  for (int positions = 1; positions <= jit::PackWeights::max_slots; ++positions) {
    for (int parts = 1; positions * parts <= jit::PackWeights::max_slots; ++parts) {
      for (const int input_step : {0, positions, positions + 3}) {
        const jit::PackWeights unit = {positions, parts, input_step};
        if (fits(unit, target)) visit(unit, target);
      }
    }
  }
}

TEST(PackWeights, CodeBelongsToTheTier) {
  int units = 0;
  for_each_unit([&](const jit::PackWeights& unit, const jit::Target& target) {
    const Result<jit::MachineCode> code = jit::emit_kernel(unit, target);
    ASSERT_TRUE(code.ok()) << code.error().message;
    const Status status = jit::check_features(*code, target);
    EXPECT_TRUE(status.ok()) << status.error().message;
    const Status hardened = jit::check_hardening(*code);
    EXPECT_TRUE(hardened.ok()) << hardened.error().message;
    EXPECT_LE(code->bytes.size(), size_t{4} << 10);
    EXPECT_EQ(jit::emit_kernel(unit, target)->bytes, code->bytes);
    ++units;
  });
  EXPECT_GE(units, 60);
}

/// Weights of one plan, and what packing them must give.
class Definition {
 public:
  Definition(const jit::DensePlan& plan, const std::byte* w, bool is_signed,
             const std::vector<int32_t>& zero_points)
      : plan_(plan), w_(w), is_signed_(is_signed), zero_points_(zero_points) {}

  std::vector<int32_t> k_groups() const {
    std::vector<int32_t> all;
    for (int64_t group = 0; group < plan_.geometry.groups; ++group) {
      for (int64_t tile = 0; tile < plan_.channel_tiles; ++tile) {
        const bool is_last = tile + 1 == plan_.channel_tiles;
        const int channels = is_last ? plan_.last_channels() : plan_.tile.channels;
        for (size_t tap = 0; tap < static_cast<size_t>(plan_.weight_k_groups()); ++tap) {
          for (int lane = 0; lane < plan_.packed_width(channels); ++lane) {
            const int64_t m =
                group * plan_.geometry.group_out_channels() + tile * plan_.tile.channels + lane;
            all.push_back(lane < channels ? dword(m, tap) : 0);
          }
        }
      }
    }
    return all;
  }

  std::vector<int32_t> sums() const {
    std::vector<int32_t> all;
    for (int64_t m = 0; m < plan_.geometry.out_channels; ++m) {
      int64_t sum = 0;
      for (int64_t i = 0; i < of_channel(); ++i) sum += weight(m, i) - shift();
      all.push_back(static_cast<int32_t>(sum));
    }
    return all;
  }

 private:
  /// What packing takes off bytes to make them signed.
  int64_t shift() const {
    const bool is_kept = keeps_signs(plan_.engine) || !multiplies_bytes(plan_.engine);
    return is_signed_ || is_kept ? 0 : 128;
  }
  int64_t positions() const {
    int64_t count = 1;
    for (const ConvolutionAxis& axis : plan_.geometry.axes) count *= axis.kernel;
    return count;
  }
  int64_t of_channel() const { return plan_.geometry.group_channels() * positions(); }

  int64_t weight(int64_t m, int64_t place) const {
    const std::byte byte = w_[m * of_channel() + place];
    return is_signed_ ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
  }

  /// The offset of a tap's channel among the weights of an output channel; -1 where there is none.
  int64_t place_of(size_t tap, int channel) const {
    if (!plan_.k_step_weights.empty()) {
      return plan_.k_step_weights[tap][static_cast<size_t>(channel)];
    }
    const int64_t in_slice = plan_.rows.kernel * plan_.columns.kernel;
    const int64_t position = static_cast<int64_t>(tap) % in_slice;
    const int64_t part = static_cast<int64_t>(tap) / in_slice % plan_.k_groups;
    const int64_t slice = static_cast<int64_t>(tap) / in_slice / plan_.k_groups;
    const int64_t input = part * jit::channels_of_k_group(plan_.engine) + channel;
    if (input >= plan_.geometry.group_channels()) return -1;
    return input * positions() + slice * in_slice + position;
  }

  int32_t dword(int64_t m, size_t tap) const {
    uint32_t dword = 0;
    const bool bytes = multiplies_bytes(plan_.engine);
    for (int channel = 0; channel < jit::channels_of_k_group(plan_.engine); ++channel) {
      const int64_t place = place_of(tap, channel);
      if (place < 0) continue;
      const int64_t zero = bytes ? shift() : zero_points_[static_cast<size_t>(m)];
      const auto value = static_cast<uint32_t>(weight(m, place) - zero);
      dword |= bytes ? (value & 0xff) << (8 * channel) : (value & 0xffff) << (16 * channel);
    }
    return static_cast<int32_t>(dword);
  }

  const jit::DensePlan& plan_;
  const std::byte* w_;
  const bool is_signed_;
  const std::vector<int32_t>& zero_points_;
};

class PackedDenseWeights : public testing::Test {
 protected:
  int64_t draw(int64_t min, int64_t max) {
    return min + static_cast<int64_t>(random_() % static_cast<uint64_t>(max - min + 1));
  }
  bool percent(int64_t chance) { return draw(1, 100) <= chance; }

  ConvolutionGeometry draw_geometry() {
    constexpr int64_t max_bytes = 40'000;
    for (;;) {
      const int64_t groups = percent(25) ? draw(2, 7) : 1;
      const int64_t channels = percent(30) ? 4 * draw(1, 20) : draw(1, 37);
      const int64_t outputs = percent(30) ? 16 * draw(1, 6) : draw(1, 75);
      Dims x = {1, groups * channels};
      Dims w = {groups * outputs, channels};
      const int64_t axes = percent(60) ? 2 : draw(1, 4);
      const int64_t max = percent(50) ? 3 : 9;
      for (int64_t axis = 0; axis < axes; ++axis) {
        w.push_back(draw(1, max));
        x.push_back(w[static_cast<int>(axis) + 2] + draw(0, 5));
      }
      if (element_count(w).value() > max_bytes) continue;
      const ConvolutionOptions options = {.group = groups};
      const Operation operation{.op = OpKind::conv_integer, .attributes = attributes_of(options)};
      return convolution_geometry(operation, x, w, nullptr, nullptr).value();
    }
  }

  /// One of the plans, at times with tiles of any width.
  jit::DensePlan draw_plan(const ConvolutionGeometry& geometry, const jit::Target& target) {
    std::vector<jit::DensePlan> plans = jit::possible_plans({geometry}, target);
    jit::DensePlan plan = plans[static_cast<size_t>(draw(0, std::ssize(plans) - 1))];
    if (percent(60)) {
      const int64_t channels = geometry.group_out_channels();
      const int tile = static_cast<int>(std::min<int64_t>(draw(1, 64), channels));
      plan.tile.channels = tile;
      plan.channel_tiles = (channels + tile - 1) / tile;
    }
    return plan;
  }

  /// Packs weights of full range; gives what is wrong, or nothing.
  std::string mistake_of(const jit::DensePlan& plan, const jit::Target& target) {
    const bool is_signed = percent(50);
    const bool at_end = percent(50);
    const auto outputs = static_cast<size_t>(plan.geometry.out_channels);
    Dims extents = {plan.geometry.out_channels, plan.geometry.group_channels()};
    for (const ConvolutionAxis& axis : plan.geometry.axes) extents.push_back(axis.kernel);
    const auto bytes = static_cast<size_t>(element_count(extents).value());
    std::byte* w = at_end ? weights_.at_end(bytes) : weights_.at_begin();
    const int64_t extreme = percent(20) ? draw(0, 255) : -1;
    for (size_t i = 0; i < bytes; ++i) {
      w[i] = static_cast<std::byte>(extreme >= 0 ? extreme : draw(0, 255));
    }
    std::vector<int32_t> zero_points(outputs);
    for (int32_t& zero : zero_points)
      zero = static_cast<int32_t>(is_signed ? draw(-128, 127) : draw(0, 255));
    const size_t count = packed_k_groups(plan);
    packed_.fill(poison);
    std::byte* memory = percent(50) ? packed_.at_end(4 * count) : packed_.at_begin();
    std::vector<int32_t> sums(outputs, 0x5a5a5a5a);
    const DenseWeights<int32_t> to = {{reinterpret_cast<int32_t*>(memory), count}, sums};
    const Result<WeightPackers> code = find_weight_packers(plan, target, cache_);
    if (!code.ok()) return code.error().message;
    by_code_ += code->whole.code != nullptr;
    pack_weights(plan, *code, {w, is_signed, zero_points.data()}, to);
    const Definition definition(plan, w, is_signed, zero_points);
    if (!std::ranges::equal(to.k_groups, definition.k_groups())) return "k groups differ";
    const std::vector<int32_t> expected =
        subtracts_from_pixels(plan) ? std::vector<int32_t>(outputs) : definition.sums();
    if (sums != expected) return "sums differ";
    if (!packed_.is_filled_but({memory, 4 * count}, poison)) return "written elsewhere";
    return "";
  }

  static constexpr std::byte poison{0xa5};
  std::mt19937_64 random_{60};
  test::GuardedPages weights_{size_t{64} << 10};
  test::GuardedPages packed_{size_t{4} << 20};
  jit::CodeMemory memory_;
  CodeCache cache_{memory_, jit::SystemCalls::real(), size_t{1} << 20};
  int by_code_ = 0;
};

std::string name_of(const jit::DensePlan& plan) {
  std::string name = std::to_string(plan.geometry.groups) + " groups of " +
                     std::to_string(plan.geometry.group_channels()) + " to " +
                     std::to_string(plan.geometry.group_out_channels()) + ", tiles of " +
                     std::to_string(plan.tile.channels) + ", kernel";
  for (const ConvolutionAxis& axis : plan.geometry.axes) name += " " + std::to_string(axis.kernel);
  return name;
}

TEST_F(PackedDenseWeights, AreAsDefined) {
  constexpr int cases = 200;
  for (const jit::Tier tier : test::all_tiers) {
    if (!jit::host().runs(tier)) continue;
    const jit::Target target{tier};
    by_code_ = 0;
    for (int i = 0; i < cases; ++i) {
      const jit::DensePlan plan = draw_plan(draw_geometry(), target);
      ASSERT_EQ(mistake_of(plan, target), "") << jit::name_of(tier) << ": " << name_of(plan);
    }
    EXPECT_EQ(by_code_ > 0, fits(jit::PackWeights(), target)) << jit::name_of(tier);
  }
}

}  // namespace
}  // namespace castor::detail
