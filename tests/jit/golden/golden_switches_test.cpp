// SPDX-License-Identifier: Apache-2.0
// What the golden listings of microkernels, packers and fused functions must show: every emitter,
// and every switch and choice that its code depends on.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "jit/dump/dump_requantization.hpp"
#include "jit/plan/access_pattern.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/golden_kernel.hpp"

namespace castor::test {
namespace {

/// The emitters of an epilogue that the kernel has, by what they go along.
std::vector<std::string> epilogue_emitters(const KernelSpec& spec) {
  if (std::holds_alternative<jit::DepthwiseSpec>(spec)) return {"rows"};
  if (std::holds_alternative<jit::GroupedNhwcSpec>(spec)) return {"pixels"};
  const auto* const tile = std::get_if<jit::DenseTile>(&spec);
  if (tile->store != jit::StorePolicy::rows) return {"tile"};
  if (tile->vectorised == jit::Vectorised::channels) {
    return {tile->channels % 16 == 0 ? "full tile" : "tile"};
  }
  return {"tile", "full tile"};
}

/// What it shows of epilogues: emitters, each with its types of results and with operands of the
/// result's shape.
void add_epilogue(const GoldenKernel& kernel, std::set<std::string>& shown) {
  const auto epilogue = epilogue_of(kernel);
  ASSERT_TRUE(epilogue.ok()) << epilogue.error().to_string();
  shown.insert("epilogue");
  for (const std::string& emitter : epilogue_emitters(*kernel.spec)) {
    shown.insert("epilogue by " + emitter);
  }
  for (size_t k = 0; k < epilogue->operands.size(); ++k) {
    const jit::TileOperand& operand = epilogue->operands[k];
    if (k >= epilogue->inputs())
      shown.insert("epilogue to " + std::string(name_of(epilogue->element(k))));
    const bool is_residual = k < epilogue->inputs() && k != epilogue->source && !operand.repeats &&
                             !operand.same_in_rows;
    if (is_residual) shown.insert("epilogue with a residual operand");
  }
}

/// What it shows of elementwise functions and requantizations.
void add_nests(const GoldenKernel& kernel, std::set<std::string>& shown) {
  for (const jit::Nest& nest : plan_nests(*kernel.function, kernel.target)) {
    if (nest.requantization) {
      const auto likely = likely_requantization(*kernel.function, nest, kernel.target);
      ASSERT_TRUE(likely.ok()) << likely.error().to_string();
      shown.insert("requantize");
      shown.insert(fmt::format("requantize by {}", likely->methods.front()->name()));
      continue;
    }
    shown.insert("fused");
    for (const jit::Access access : likely_form(*kernel.function, nest, kernel.target).access) {
      shown.insert(fmt::format("fused, {} operand", name_of(access)));
    }
  }
}

std::set<std::string> shown_by(const GoldenKernel& kernel) {
  std::set<std::string> shown;
  if (kernel.is_likely) add_nests(kernel, shown);
  if (!kernel.spec) return shown;
  shown.merge(switches_of(*kernel.spec));
  if (kernel.function) add_epilogue(kernel, shown);
  return shown;
}

/// Every emitter, and every switch and choice of it, but for what no proof can follow: window sums
/// that a pixel-vectorised kernel stores for others (WindowSums::own_products).
constexpr std::string_view required[] = {
    "pixel_vectorised engine=u8_i8_dot",
    "pixel_vectorised engine=i8_u8_dot",
    "pixel_vectorised engine=i16_pairs",
    "pixel_vectorised window_sums=none",
    "pixel_vectorised window_sums=i32",
    "pixel_vectorised window_sums=i16_pairs",
    "pixel_vectorised store=compressed",
    "pixel_vectorised peeled_k_steps=0",
    "pixel_vectorised peeled_k_steps=1",
    "pixel_vectorised peeled_k_steps=2",
    "pixel_vectorised peeled_k_steps=3",
    "pixel_vectorised prefetch",
    "pixel_vectorised source=packed",
    "pixel_vectorised source=input",
    "pixel_vectorised source=signed_input",
    "pixel_vectorised reads_input_once",
    "pixel_vectorised window_sums=own",
    "pixel_vectorised window_sums=products",
    "pixel_vectorised loops_k_groups",
    "channel_vectorised engine=u8_i8_dot",
    "channel_vectorised engine=i16_pairs",
    "channel_vectorised engine=tiles",
    "channel_vectorised sign_flip",
    "channel_vectorised signed_x",
    "channel_vectorised signed_w",
    "channel_vectorised streams_weights",
    "channel_vectorised channels_inside",
    "channel_vectorised row_pitch",
    "channel_vectorised prefetched_lines",
    "channel_vectorised window_sums=none",
    "channel_vectorised window_sums=i32",
    "channel_vectorised window_sums=i16_pairs",
    "channel_vectorised window_sums=products",
    "channel_vectorised rows",
    "channel_vectorised store=transposed",
    "channel_vectorised transposes_registers",
    "channel_vectorised peeled_k_steps=0",
    "channel_vectorised peeled_k_steps=4",
    "depthwise engine=u8_i8_dot",
    "depthwise engine=i16_pairs",
    "depthwise row_stride=1",
    "depthwise row_stride=2",
    "depthwise repeats_last_tap",
    "depthwise source_bytes=32",
    "depthwise source_bytes=64",
    "depthwise sign_flip",
    "depthwise signed_input",
    "depthwise subtracts_window_sums",
    "depthwise adds",
    "depthwise several blocks",
    "depthwise block above",
    "depthwise block border_above",
    "depthwise block border_below",
    "depthwise block below",
    "depthwise block masks_rows",
    "grouped_nhwc engine=u8_i8_dot",
    "grouped_nhwc engine=i16_pairs",
    "grouped_nhwc row_stride=2",
    "grouped_nhwc column_stride=2",
    "grouped_nhwc k_groups=0",
    "grouped_nhwc k_groups=1",
    "grouped_nhwc k_groups=2",
    "grouped_nhwc repeats",
    "grouped_nhwc is_partial",
    "grouped_nhwc masks_lanes",
    "grouped_nhwc sign_flip",
    "grouped_nhwc signed_input",
    "grouped_nhwc subtracts_window_sums",
    "grouped_nhwc adds",
    "grouped_nhwc several blocks",
    "grouped_nhwc block above",
    "grouped_nhwc block below",
    "dot engine=u8_i8_dot",
    "dot engine=i8_u8_dot",
    "dot engine=i16_pairs",
    "dot pixels",
    "dot tail",
    "dot signed_w",
    "dot sums_weights",
    "dot zero_points",
    "epilogue by tile",
    "epilogue by full tile",
    "epilogue by rows",
    "epilogue by pixels",
    "epilogue to u8",
    "epilogue to f32",
    "epilogue with a residual operand",
    "pack_input column_stride=1",
    "pack_input column_stride=2",
    "pack_input layout=nchw4c",
    "pack_input layout=columns4",
    "pack_input layout=im2col",
    "pack_weights input_step",
    "pack_weights k_groups",
    "fused, contiguous operand",
    "fused, uniform operand",
    "fused, periodic operand",
    "fused, repeated operand",
    "byte_table",
    "requantize by linear",
    "requantize by i32 product that saturates",
    "requantize by float quotient",
    "requantize by to float",
};

/// How many listings at least there are that show something with that beginning.
constexpr std::pair<std::string_view, int> min_listings[] = {
    {"pixel_vectorised", 8},
    {"channel_vectorised", 4},
    {"depthwise", 2},
    {"grouped_nhwc", 2},
    {"epilogue", 6},
    {"pack_", 4},
    {"fused", 4},
    {"requantize", 3},
};

TEST(GoldenListings, ShowEveryKernelAndSwitch) {
  std::set<std::string> shown;
  std::map<jit::Tier, int> files_of_tier;
  std::map<std::string_view, int> listings;
  for (const auto& file : listing_files()) {
    const auto kernel = read_golden_kernel(text_of_file(file));
    ASSERT_TRUE(kernel.ok()) << file << ": " << kernel.error().to_string();
    const std::set<std::string> here = shown_by(*kernel);
    for (const auto& [beginning, min] : min_listings) {
      listings[beginning] += std::ranges::any_of(
          here, [&name = beginning](const std::string& each) { return each.starts_with(name); });
    }
    if (!here.empty()) ++files_of_tier[kernel->target.tier];
    shown.insert(here.begin(), here.end());
  }
  for (const std::string_view each : required) {
    EXPECT_TRUE(shown.contains(std::string(each))) << "no listing shows: " << each;
  }
  for (const auto& [beginning, min] : min_listings) {
    EXPECT_GE(listings[beginning], min) << beginning;
  }
  EXPECT_EQ(files_of_tier.size(), size_t{jit::tier_count});
}

}  // namespace
}  // namespace castor::test
