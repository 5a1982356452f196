// SPDX-License-Identifier: Apache-2.0
// Convolutions take at most 1 MiB of scratch beside packed weights, whatever their shape.
#include <gtest/gtest.h>

#include <array>

#include "jit/memory/system_memory.hpp"
#include "runtime/cache/code_store.hpp"
#include "runtime/conv/convolution.hpp"
#include "tests/support/conversions.hpp"

namespace castor::detail {
namespace {

struct Row {
  std::string_view name;
  Dims x;
  Dims w;
  ConvolutionOptions options;
};

std::vector<Row> rows() {
  const auto last = [](ConvolutionOptions options) {
    options.layout = ConvolutionLayout::nhwc;
    return options;
  };
  const ConvolutionOptions padded = {.pads = {1, 1, 1, 1}};
  return {
      {"long signal", {1, 4, 1'000'000}, {32, 4, 5}, {}},
      {"long signal, channels last", {1, 1'000'000, 4}, {32, 4, 5}, last({})},
      {"one channel", {1, 1, 1'000'000}, {64, 1, 25}, {.pads = {12, 12}}},
      {"one channel, channels last", {1, 1'000'000, 1}, {8, 1, 5}, last({.pads = {2, 2}})},
      {"many outputs, channels last", {1, 300'000, 2}, {512, 2, 3}, last({.pads = {1, 1}})},
      {"wide filter, channels last", {1, 13951, 12}, {33, 12, 16}, last({.pads = {0, 8}})},
      {"large image", {1, 3, 1080, 1920}, {32, 3, 3, 3}, padded},
      {"large image, channels last", {1, 1080, 1920, 3}, {32, 3, 3, 3}, last(padded)},
      {"square image", {1, 3, 1000, 1000}, {64, 3, 3, 3}, padded},
      {"square image, channels last", {1, 1000, 1000, 3}, {64, 3, 3, 3}, last(padded)},
      {"filter of one position", {1, 64, 500, 500}, {64, 64, 1, 1}, {}},
      {"filter of one position, channels last", {1, 500, 500, 64}, {64, 64, 1, 1}, last({})},
      {"few outputs, channels last", {1, 300, 300, 64}, {3, 64, 3, 3}, last(padded)},
      {"many channels", {1, 2048, 33, 33}, {256, 2048, 3, 3}, padded},
      {"many channels of two pixels", {1, 65536, 2}, {1, 65536, 1}, {}},
      {"many channels of a few pixels", {1, 16384, 3, 5}, {4, 16384, 1, 1}, {}},
  };
}

TEST(ConvScratch, IsSmallBesideWeights) {
  CodeStore store{jit::SystemCalls::real(), size_t{64} << 20};
  for (const Row& row : rows()) {
    const Operation operation{.op = OpKind::conv_integer, .attributes = attributes_of(row.options)};
    const Dims channels{row.w[0]};
    const auto geometry = convolution_geometry(operation, row.x, row.w, nullptr, &channels);
    ASSERT_TRUE(geometry.ok()) << row.name << ": " << geometry.error().message;
    for (const auto& [tier, runtime] : test::tier_runtimes()) {
      for (const ElementType x : {ElementType::u8, ElementType::i8}) {
        const ConvolutionOperands operands = {.x_is_signed = x == ElementType::i8,
                                              .w_zero_point = 2,
                                              .zero_points_per_channel = true};
        const std::array<const std::byte*, 4> constants = {};
        ScratchPlan scratch;
        const auto bound = bind_convolution(*geometry, operands, constants, jit::Target{tier},
                                            store.cache, scratch);
        ASSERT_TRUE(bound.ok()) << row.name << ": " << bound.error().message;
        const BoundDense* dense = (*bound)->dense();
        ASSERT_NE(dense, nullptr) << row.name;
        const size_t weights = 4 * (packed_k_groups(dense->plan) + static_cast<size_t>(row.w[0]));
        constexpr size_t max = size_t{1} << 20;
        EXPECT_LE((*bound)->scratch_bytes, max + weights)
            << row.name << ", " << name_of(tier) << "\n"
            << print(dense->plan);
      }
    }
  }
}

}  // namespace
}  // namespace castor::detail
