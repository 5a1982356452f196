// SPDX-License-Identifier: Apache-2.0
// What binding makes of matrix products: one convolution each, of which operand, and no copy that
// is not needed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/bind/bound_state.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/state_access.hpp"
#include "tests/support/conversions.hpp"

namespace castor::test {
namespace {

/// A convolution in words: image, groups, channels and pixels, and whether it has an epilogue.
struct InWords {
  std::string operator()(const detail::ConvolutionStep& step) const {
    const ConvolutionGeometry& geometry = step.convolution->geometry;
    return fmt::format(
        "{} {}x{}: {}x{} to {}{}", geometry.layout == ConvolutionLayout::nhwc ? "rows" : "columns",
        geometry.batch, geometry.groups, geometry.axes[0].output, geometry.group_channels(),
        geometry.group_out_channels(), step.epilogue ? " with epilogue" : "");
  }
  std::string operator()(const detail::ElementwiseStep& step) const {
    return step.program == detail::StepProgram::copy ? "copy" : "elementwise";
  }
  template <class Step>
  std::string operator()(const Step&) const {
    return "other";
  }
};

std::string steps_of(const BoundKernel& bound) {
  std::string text;
  for (const detail::Step& step : detail::StateAccess::of(bound).steps) {
    text += (text.empty() ? "" : ", ") + std::visit(InWords(), step);
  }
  return text;
}

struct Row {
  const char* parameters;
  const char* operands;
  std::vector<Dims> shapes;
  const char* steps;
  std::vector<Dims> strides = {};  ///< none: dense
};

/// The result's type, with unknown extents; %c, a constant, is of rank 2.
std::string result_type(const Row& row) {
  const bool has_constant = std::string_view(row.operands).find("%c") != std::string_view::npos;
  const int of_a = row.shapes[0].rank();
  const int of_b = has_constant ? 2 : row.shapes[1].rank();
  const int rank = std::max(of_a, of_b) - (of_a == 1) - (of_b == 1);
  std::string type = "i32[";
  for (int axis = 0; axis < rank; ++axis) type += axis > 0 ? ", ?" : "?";
  return type + "]";
}

TEST(MatmulSteps, AreOneConvolution) {
  const Row rows[] = {
      // A b of each matrix that is stored as [N, K]: as it is, unless it is broadcast, or K or N
      // are too short for dot kernels.
      {"%a: u8[4, 5, 64], %b: i8[4, 64, 8]",
       "%a, %b",
       {{4, 5, 64}, {4, 64, 8}},
       "rows 4x1: 5x64 to 8",
       {{320, 64, 1}, {512, 1, 64}, {40, 8, 1}}},
      {"%a: u8[5, 64], %b: i8[4, 64, 8]",
       "%a, %b",
       {{5, 64}, {4, 64, 8}},
       "copy, rows 4x1: 5x64 to 8",
       {{64, 1}, {512, 1, 64}, {40, 8, 1}}},
      {"%a: u8[4, 5, 64], %b: i8[4, 64, 3]",
       "%a, %b",
       {{4, 5, 64}, {4, 64, 3}},
       "copy, columns 1x4: 3x64 to 5",
       {{320, 64, 1}, {192, 1, 64}, {15, 3, 1}}},
      {"%a: u8[64], %b: i8[4, 64, 8]",
       "%a, %b",
       {{64}, {4, 64, 8}},
       "copy, columns 4x1: 8x64 to 1",
       {{1}, {512, 1, 64}, {8, 1}}},
      {"%a: u8[5, 3], %b: i8[3, 2]", "%a, %b", {{5, 3}, {3, 2}}, "columns 1x1: 2x3 to 5"},
      {"%a: u8[5, 3]", "%a, %c", {{5, 3}}, "rows 1x1: 5x3 to 2"},
      {"%a: u8[5, 3], %z: u8[]", "%a, %c, %z", {{5, 3}, {}}, "rows 1x1: 5x3 to 2"},
      // Zero points by row times the sums of a constant's columns are subtracted.
      {"%a: u8[5, 3], %z: u8[5]",
       "%a, %c, %z",
       {{5, 3}, {5}},
       "elementwise, rows 1x1: 5x3 to 2 with epilogue"},
      {"%a: u8[5, 3], %z: u8[5, 1]",
       "%a, %c, %z",
       {{5, 3}, {5, 1}},
       "elementwise, rows 1x1: 5x3 to 2 with epilogue"},
      {"%a: u8[?, 3], %z: u8[?]",
       "%a, %c, %z",
       {{1, 3}, {1}},
       "elementwise, rows 1x1: 1x3 to 2 with epilogue"},
      {"%a: u8[5, 3], %b: i8[3, 2], %z: u8[5]",
       "%a, %b, %z",
       {{5, 3}, {3, 2}, {5}},
       "columns 1x1: 2x3 to 5"},
      // The weights' zero points are not known, so that the transpose is made in each call.
      {"%a: u8[5, 3], %z: i8[2]", "%a, %c, none, %z", {{5, 3}, {2}}, "copy, rows 1x1: 5x3 to 2"},
      {"%a: u8[5, 3], %z: i8[]", "%a, %c, none, %z", {{5, 3}, {}}, "columns 1x1: 2x3 to 5"},
      {"%a: u8[5, 3], %b: i8[3, 2], %z: i8[2]",
       "%a, %b, none, %z",
       {{5, 3}, {3, 2}, {2}},
       "copy, rows 1x1: 5x3 to 2"},
      {"%a: u8[5, 3], %b: i8[3, 2]",
       "%a, %b",
       {{5, 3}, {3, 2}},
       "rows 1x1: 5x3 to 2",
       {{3, 1}, {1, 3}, {2, 1}}},
      {"%a: u8[4, 5, 3]", "%a, %c", {{4, 5, 3}}, "rows 1x1: 20x3 to 2"},
      {"%a: u8[4, 5, 3], %b: i8[3, 2]", "%a, %b", {{4, 5, 3}, {3, 2}}, "columns 1x1: 2x3 to 20"},
      {"%a: u8[5, 3], %b: i8[4, 3, 2]", "%a, %b", {{5, 3}, {4, 3, 2}}, "columns 4x1: 2x3 to 5"},
      {"%a: u8[4, 5, 3], %b: i8[4, 3, 2]",
       "%a, %b",
       {{4, 5, 3}, {4, 3, 2}},
       "columns 1x4: 2x3 to 5"},
      {"%a: u8[1, 4, 6, 5, 3], %b: i8[7, 4, 1, 3, 2]",
       "%a, %b",
       {{1, 4, 6, 5, 3}, {7, 4, 1, 3, 2}},
       "columns 7x4: 2x3 to 30"},
      {"%a: u8[4, 1, 5, 3], %b: i8[1, 6, 3, 2]",
       "%a, %b",
       {{4, 1, 5, 3}, {1, 6, 3, 2}},
       "copy, copy, columns 1x24: 2x3 to 5"},
      {"%a: u8[4, 1, 5, 3], %b: i8[4, 6, 3, 2]",
       "%a, %b",
       {{4, 1, 5, 3}, {4, 6, 3, 2}},
       "copy, columns 1x24: 2x3 to 5"},
      {"%a: u8[4, 5, 3], %b: i8[4, 3, 2], %z: u8[5]",
       "%a, %b, %z",
       {{4, 5, 3}, {4, 3, 2}, {5}},
       "copy, columns 1x4: 2x3 to 5"},
      {"%a: u8[3], %b: i8[3]", "%a, %b", {{3}, {3}}, "columns 1x1: 1x3 to 1"},
  };
  for (const Row& row : rows) {
    const std::string text = fmt::format(
        "func @f({}) -> ({}) {{\n  %c = constant [1, 2, 3, 4, 5, 6] : i8[3, 2]\n"
        "  %y = matmul_integer {}\n  return %y\n}}\n",
        row.parameters, result_type(row), row.operands);
    const Result<FunctionPtr> function = parse_function(text);
    ASSERT_TRUE(function) << function.error().to_string() << text;
    for (const auto& [tier, runtime] : tier_runtimes()) {
      const Result<Kernel> kernel = runtime.compile(*function);
      ASSERT_TRUE(kernel) << kernel.error().to_string();
      const Result<BoundKernel> bound = kernel->bind(row.shapes, row.strides);
      ASSERT_TRUE(bound) << bound.error().to_string();
      EXPECT_EQ(steps_of(*bound), row.steps) << name_of(tier) << "\n" << text;
    }
  }
}

}  // namespace
}  // namespace castor::test
