// SPDX-License-Identifier: Apache-2.0
#include "tests/support/depthwise_cases.hpp"

#include <algorithm>

#include "ir/text/text.hpp"
#include "tests/support/convolution_loops.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tools/testing/thread_per_task.hpp"

namespace castor::test {

Placing DepthwiseCases::draw_placing() {
  const bool at_begin = layout_ == ConvolutionLayout::nhwc && !percent(50);
  if (percent(80)) return at_begin ? Placing::at_begin : Placing::at_end;
  return static_cast<Placing>(draw(0, placings - 1));
}

ConvolutionCase DepthwiseCases::drawn(const Depthwise& of, ElementType x_type, ElementType w_type) {
  const bool is_nhwc = layout_ == ConvolutionLayout::nhwc;
  Dims x = {draw(1, 2)};
  Dims w = {of.groups() * of.multiplier, of.group_channels};
  if (!is_nhwc) x.push_back(of.channels);
  for (int axis = 0; axis < of.input.rank(); ++axis) {
    x.push_back(of.input[axis]);
    w.push_back(of.kernel[axis]);
  }
  if (is_nhwc) x.push_back(of.channels);
  ConvolutionCase row{.options = of.options,
                      .x = random_bytes(random_, x_type, x),
                      .w = random_bytes(random_, w_type, w)};
  row.options.group = of.groups();
  row.options.layout = layout_;
  const bool narrow = percent(25);
  for (uint64_t& bits : row.w.elements) bits = narrow ? bits % 60 : bits;
  if (percent(70)) row.x_zero_point = random_bytes(random_, x_type, {});
  if (percent(70)) {
    row.w_zero_point = random_bytes(random_, w_type, percent(50) ? Dims{} : Dims{w[0]});
    for (uint64_t& bits : row.w_zero_point->elements) bits = narrow ? bits % 60 : bits;
  }
  return row;
}

Depthwise DepthwiseCases::with_axes(Depthwise row, int axes) {
  std::vector<int64_t> ends;
  for (int axis = 0; axis < axes; ++axis) {
    row.kernel.push_back(draw(1, axes == 1 ? 9 : 3));
    const int64_t dilation = draw(1, 3);
    const int64_t window = (row.kernel[axis] - 1) * dilation + 1;
    row.input.push_back(window + draw(0, axes == 1 ? 300 : 12 / axes));
    row.options.dilations.push_back(dilation);
    row.options.strides.push_back(draw(1, 3));
    row.options.pads.push_back(draw(0, 5));
    ends.push_back(draw(0, 5));
  }
  row.options.pads.insert(row.options.pads.end(), ends.begin(), ends.end());
  return row;
}

Depthwise DepthwiseCases::with_any_axes(Depthwise row, int axes, const AxisLimits& max) {
  std::vector<int64_t> ends;
  for (int axis = 0; axis < axes; ++axis) {
    row.kernel.push_back(draw(1, percent(20) ? 7 : 3));
    const int64_t dilation = percent(60) ? 1 : draw(1, max.dilation);
    const int64_t window = (row.kernel[axis] - 1) * dilation + 1;
    const bool padded = percent(60);
    row.options.pads.push_back(padded ? draw(0, 4) : 0);
    ends.push_back(padded ? draw(0, 4) : 0);
    const int64_t min = std::max<int64_t>(1, window - row.options.pads.back() - ends.back());
    row.input.push_back(min + draw(0, max.excess));
    row.options.dilations.push_back(dilation);
    row.options.strides.push_back(percent(50) ? 1 : draw(1, 5));
  }
  row.options.pads.insert(row.options.pads.end(), ends.begin(), ends.end());
  return row;
}

std::string DepthwiseCases::mistake_of(const ConvolutionCase& row) {
  const ConvolutionForm form = {.unknown_extents = percent(30),
                                .constant_weights = percent(50),
                                .constant_zero_points = percent(50)};
  const FunctionPtr function = function_of(row, form);
  if (!function) return "no function";
  std::vector<Placed> operands;
  for (const Patterns& tensor : parameters_of(row, form)) {
    operands.push_back({tensor, draw_placing()});
  }
  const std::vector<Placed> expected = {{ConvolutionLoops(row).all(), draw_placing()}};
  return mistake_of(function, operands, expected);
}

std::string DepthwiseCases::mistake_of(const FunctionPtr& function,
                                       const std::vector<Placed>& operands,
                                       const std::vector<Placed>& expected) {
  const std::string mistake = mistake_on_tiers(function, operands, expected);
  return mistake.empty() ? "" : mistake + "\n" + print(*function);
}

void DepthwiseCases::check_kernels(const KernelLimits& max) {
  for (int64_t kernel = 1; kernel <= max.kernel; ++kernel) {
    for (int64_t stride = 1; stride <= max.stride; ++stride) {
      for (int64_t dilation = 1; dilation <= 3; ++dilation) {
        const int64_t rows = draw(1, 7);
        const int64_t row_dilation = draw(1, 3);
        const int64_t window = (kernel - 1) * dilation + 1;
        const int64_t row_window = (rows - 1) * row_dilation + 1;
        const Depthwise row = {.channels = draw_channels(5),
                               .input = {row_window + draw(0, 20), window + draw(0, max.excess)},
                               .kernel = {rows, kernel},
                               .options = {.dilations = {row_dilation, dilation},
                                           .pads = {draw(0, 4), draw(0, 4), draw(0, 4), draw(0, 4)},
                                           .strides = {draw(1, 3), stride}}};
        ASSERT_EQ(mistake_of(row), "");
      }
    }
  }
}

void DepthwiseCases::check_large_padding(int cases, int64_t max_columns,
                                         const std::array<int64_t, 4>& max) {
  for (int i = 0; i < cases; ++i) {
    const Depthwise row = {
        .channels = draw_channels(3),
        .input = {draw(1, 9), draw(1, max_columns)},
        .kernel = {draw(1, 3), draw(1, 5)},
        .options = {.dilations = {draw(1, 3), draw(1, 2)},
                    .pads = {draw(6, max[0]), draw(6, max[1]), draw(6, max[2]), draw(6, max[3])},
                    .strides = {draw(1, 4), draw(1, 4)}}};
    ASSERT_EQ(mistake_of(row), "") << i;
  }
}

void DepthwiseCases::check_signs_and_zero_points(const Depthwise& of) {
  enum Zero { none, scalar, per_channel };
  for (ElementType x_type : byte_types) {
    for (ElementType w_type : byte_types) {
      for (bool has_x_zero : {false, true}) {
        for (Zero w_zero : {none, scalar, per_channel}) {
          for (int repeat = 0; repeat < 6; ++repeat) {
            ConvolutionCase row = drawn(of, x_type, w_type);
            row.x_zero_point.reset();
            row.w_zero_point.reset();
            if (has_x_zero) row.x_zero_point = random_bytes(random_, x_type, {});
            if (w_zero != none) {
              row.w_zero_point =
                  random_bytes(random_, w_type, w_zero == scalar ? Dims{} : Dims{row.w.shape[0]});
            }
            ASSERT_EQ(mistake_of(row), "");
          }
        }
      }
    }
  }
}

void DepthwiseCases::check_extremes(const Depthwise& of) {
  for (uint64_t x : {0, 127, 128, 255}) {
    for (uint64_t w : {0, 127, 128, 255}) {
      for (uint64_t x_zero : {0, 127, 128, 255}) {
        for (uint64_t w_zero : {0, 127, 128, 255}) {
          ConvolutionCase row = drawn(of);
          std::ranges::fill(row.x.elements, x);
          std::ranges::fill(row.w.elements, w);
          row.x_zero_point = {row.x.type, {}, {x_zero}};
          row.w_zero_point = {row.w.type, {}, {w_zero}};
          ASSERT_EQ(mistake_of(row), "");
        }
      }
    }
  }
}

void DepthwiseCases::check_tasks(const Depthwise& of) {
  const ConvolutionCase row = drawn(of);
  const ConvolutionForm form = {.constant_weights = true, .constant_zero_points = true};
  const FunctionPtr function = function_of(row, form);
  const Patterns expected = ConvolutionLoops(row).all();
  for (const auto& [tier, runtime] : tier_runtimes()) {
    const auto kernel = runtime.compile(function);
    ASSERT_TRUE(kernel) << kernel.error().to_string();
    PlacedTensor x(Placed{row.x});
    const std::vector<ConstView> inputs = {x.view()};
    for (int tasks : {1, 2, 7}) {
      PlacedTensor y(ElementType::i32, expected.shape, Placing::at_end);
      const std::vector<View> outputs = {y.view()};
      const auto bound = kernel->bind(inputs, outputs);
      ASSERT_TRUE(bound) << bound.error().to_string();
      ThreadPerTask executor(tasks);
      const RunOptions options = {.executor = tasks == 1 ? nullptr : &executor};
      ASSERT_TRUE(bound->run(inputs, outputs, options));
      const bool is_shared = tasks > 1 && jit::Target{tier}.has_avx512();
      EXPECT_GE(executor.max(), is_shared ? 2 : 1);
      ASSERT_EQ(first_difference(expected, y.take()), "") << name_of(tier) << ", " << tasks;
    }
  }
}

}  // namespace castor::test
