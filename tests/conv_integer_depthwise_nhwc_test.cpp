// SPDX-License-Identifier: Apache-2.0
// Depthwise conv_integer with layout = nhwc by machine code on every tier, against loops straight
// from the formula, with each tensor at the end or the beginning of its pages.
#include <algorithm>
#include <array>
#include <bit>

#include "ir/text.hpp"
#include "jit/conv/depthwise_nhwc_plan.hpp"
#include "jit/listing/listing.hpp"
#include "tests/support/convolution_loops.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/placed_tensors.hpp"
#include "tests/support/thread_per_task.hpp"

namespace castor::test {
namespace {

using enum ElementType;

constexpr std::array byte_types = {u8, i8};

/// What makes one depthwise convolution; lists of extents along the spatial axes.
struct Depthwise {
  int64_t channels = 3;
  Dims input{};
  Dims kernel{};
  ConvolutionOptions options{};
};

class ConvDepthwiseNhwc : public testing::Test {
 protected:
  int64_t draw(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  bool percent(int64_t chance) { return draw(1, 100) <= chance; }
  ElementType byte() { return byte_types[static_cast<size_t>(draw(0, 1))]; }
  /// Vectors of channels that are partial, whole, or lie over each other.
  int64_t draw_channels() {
    const int64_t whole = 16 * draw(1, 3);
    return percent(30) ? draw(1, 15) : percent(40) ? whole : whole + draw(1, 15);
  }

  /// Full-range data. Weights of one kind in four are such that they are bytes less any zero point.
  ConvolutionCase drawn(const Depthwise& of, ElementType x_type, ElementType w_type) {
    Dims x = {draw(1, 2)};
    Dims w = {of.channels, 1};
    for (int axis = 0; axis < of.input.rank(); ++axis) {
      x.push_back(of.input[axis]);
      w.push_back(of.kernel[axis]);
    }
    x.push_back(of.channels);
    ConvolutionCase row{.options = of.options,
                        .x = random_bytes(random_, x_type, x),
                        .w = random_bytes(random_, w_type, w)};
    row.options.group = of.channels;
    row.options.layout = ConvolutionLayout::nhwc;
    const bool narrow = percent(25);
    for (uint64_t& bits : row.w.elements) bits = narrow ? bits % 60 : bits;
    if (percent(70)) row.x_zero_point = random_bytes(random_, x_type, {});
    if (percent(70)) {
      row.w_zero_point = random_bytes(random_, w_type, percent(50) ? Dims{} : Dims{w[0]});
      for (uint64_t& bits : row.w_zero_point->elements) bits = narrow ? bits % 60 : bits;
    }
    return row;
  }
  ConvolutionCase drawn(const Depthwise& of) { return drawn(of, byte(), byte()); }

  /// Runs it with parameters at the ends or beginnings of their pages.
  std::string mistake_of(const ConvolutionCase& row) {
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
    const std::string mistake = mistake_on_tiers(function, operands, expected);
    return mistake.empty() ? "" : mistake + "\n" + print(*function);
  }
  /// Of a function of parameters, against the interpreter.
  std::string mistake_of(const FunctionPtr& function) {
    std::vector<Patterns> tensors;
    std::vector<Placed> operands;
    for (const ValueId id : function->parameters) {
      const TensorType& type = function->values[id].type;
      Dims shape;
      for (const Dim& dim : type.shape) shape.push_back(dim.extent);
      tensors.push_back(random_patterns(type.element, shape));
      operands.push_back({tensors.back(), draw_placing()});
    }
    std::vector<Placed> expected;
    for (Patterns& result : interpreted_results(*function, tensors)) {
      expected.push_back({std::move(result), draw_placing()});
    }
    const std::string mistake = mistake_on_tiers(function, operands, expected);
    return mistake.empty() ? "" : mistake + "\n" + print(*function);
  }
  /// Floats are moderate.
  Patterns random_patterns(ElementType type, const Dims& shape) {
    Patterns tensor{type, shape, {}};
    for (int64_t i = 0; i < element_count(shape).value(); ++i) {
      const auto scale = static_cast<float>(draw(-1000, 1000)) / 4096;
      tensor.elements.push_back(type == f32   ? std::bit_cast<uint32_t>(scale)
                                : type == i32 ? static_cast<uint32_t>(draw(-5000, 5000))
                                              : static_cast<uint64_t>(draw(0, 255)));
    }
    return tensor;
  }
  Placing draw_placing() {
    const Placing dense = percent(50) ? Placing::at_end : Placing::at_begin;
    return percent(80) ? dense : static_cast<Placing>(draw(0, placings - 1));
  }

  std::mt19937_64 random_{37};
};

TEST_F(ConvDepthwiseNhwc, AnyNumberOfChannels) {
  for (int64_t channels = 1; channels <= 70; ++channels) {
    const Depthwise row = {.channels = channels,
                           .input = {draw(1, 12), draw(1, 12)},
                           .kernel = {draw(1, 3), draw(1, 3)},
                           .options = {.pads = {2, 2, 2, 2}}};
    ASSERT_EQ(mistake_of(drawn(row)), "") << channels;
  }
}

TEST_F(ConvDepthwiseNhwc, RowsOfAnyLength) {
  for (int64_t width = 1; width <= 40; ++width) {
    for (int64_t stride = 1; stride <= 3; ++stride) {
      const Depthwise row = {.channels = draw_channels(),
                             .input = {draw(4, 25), width},
                             .kernel = {draw(1, 4), std::min<int64_t>(draw(1, 5), width)},
                             .options = {.pads = {draw(0, 2), draw(0, 2), draw(0, 2), draw(0, 2)},
                                         .strides = {draw(1, 3), stride}}};
      ASSERT_EQ(mistake_of(drawn(row)), "");
    }
  }
}

TEST_F(ConvDepthwiseNhwc, KernelsStridesAndDilations) {
  for (int64_t kernel = 1; kernel <= 9; ++kernel) {
    for (int64_t stride = 1; stride <= 4; ++stride) {
      for (int64_t dilation = 1; dilation <= 3; ++dilation) {
        const int64_t rows = draw(1, 7);
        const int64_t row_dilation = draw(1, 3);
        const int64_t window = (kernel - 1) * dilation + 1;
        const int64_t row_window = (rows - 1) * row_dilation + 1;
        const Depthwise row = {.channels = draw_channels(),
                               .input = {row_window + draw(0, 20), window + draw(0, 15)},
                               .kernel = {rows, kernel},
                               .options = {.dilations = {row_dilation, dilation},
                                           .pads = {draw(0, 4), draw(0, 4), draw(0, 4), draw(0, 4)},
                                           .strides = {draw(1, 3), stride}}};
        ASSERT_EQ(mistake_of(drawn(row)), "");
      }
    }
  }
}

/// Padding larger than the filter, so that places and blocks lie outside the image altogether.
TEST_F(ConvDepthwiseNhwc, LargePadding) {
  for (int i = 0; i < 60; ++i) {
    const Depthwise row = {.channels = draw_channels(),
                           .input = {draw(1, 9), draw(1, 20)},
                           .kernel = {draw(1, 3), draw(1, 5)},
                           .options = {.dilations = {draw(1, 3), draw(1, 2)},
                                       .pads = {draw(6, 40), draw(6, 30), draw(6, 20), draw(6, 20)},
                                       .strides = {draw(1, 4), draw(1, 4)}}};
    ASSERT_EQ(mistake_of(drawn(row)), "") << i;
  }
}

/// Lines, volumes and beyond; the last of these have another form.
TEST_F(ConvDepthwiseNhwc, OtherNumbersOfAxes) {
  for (int axes : {1, 3}) {
    for (int i = 0; i < 60; ++i) {
      Depthwise row = {.channels = draw_channels()};
      std::vector<int64_t> ends;
      for (int axis = 0; axis < axes; ++axis) {
        row.kernel.push_back(draw(1, axes == 1 ? 9 : 3));
        const int64_t dilation = draw(1, 3);
        const int64_t window = (row.kernel[axis] - 1) * dilation + 1;
        row.input.push_back(window + draw(0, axes == 1 ? 300 : 4));
        row.options.dilations.push_back(dilation);
        row.options.strides.push_back(draw(1, 3));
        row.options.pads.push_back(draw(0, 5));
        ends.push_back(draw(0, 5));
      }
      row.options.pads.insert(row.options.pads.end(), ends.begin(), ends.end());
      ASSERT_EQ(mistake_of(drawn(row)), "") << axes << " axes, " << i;
    }
  }
}

/// Images of several blocks and pieces, and lines of several parts.
TEST_F(ConvDepthwiseNhwc, LargeImages) {
  const Depthwise rows[] = {
      {.channels = 32, .input = {112, 112}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 40, .input = {50, 61}, .kernel = {5, 5}, .options = {.pads = {2, 2, 2, 2}}},
      {.channels = 20, .input = {33, 70}, .kernel = {7, 7}, .options = {.pads = {3, 3, 3, 3}}},
      {.channels = 17,
       .input = {50, 60},
       .kernel = {3, 3},
       .options = {.dilations = {2, 2}, .pads = {2, 2, 2, 2}}},
      {.channels = 96,
       .input = {31, 40},
       .kernel = {3, 3},
       .options = {.pads = {1, 1, 1, 1}, .strides = {2, 2}}},
      {.channels = 16, .input = {9'000}, .kernel = {7}, .options = {.pads = {4, 4}}},
      {.channels = 100, .input = {900}, .kernel = {3}, .options = {.pads = {4, 4}}},
      {.channels = 700, .input = {14, 14}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 1030, .input = {7, 7}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
  };
  for (const Depthwise& row : rows) ASSERT_EQ(mistake_of(drawn(row)), "");
}

TEST_F(ConvDepthwiseNhwc, SignsAndZeroPoints) {
  enum Zero { none, scalar, per_channel };
  const Depthwise of = {
      .channels = 21, .input = {8, 9}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}};
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
                  random_bytes(random_, w_type, w_zero == scalar ? Dims{} : Dims{of.channels});
            }
            ASSERT_EQ(mistake_of(row), "");
          }
        }
      }
    }
  }
}

/// The extreme bytes everywhere: no product of pairs may saturate.
TEST_F(ConvDepthwiseNhwc, Extremes) {
  const Depthwise of = {
      .channels = 18, .input = {9, 5}, .kernel = {7, 7}, .options = {.pads = {3, 3, 3, 3}}};
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

TEST_F(ConvDepthwiseNhwc, AnythingAtRandom) {
  for (int i = 0; i < 500; ++i) {
    const int axes = static_cast<int>(draw(1, 2));
    Depthwise row = {.channels = draw_channels()};
    std::vector<int64_t> ends;
    for (int axis = 0; axis < axes; ++axis) {
      row.kernel.push_back(draw(1, percent(20) ? 7 : 3));
      const int64_t dilation = percent(60) ? 1 : draw(1, 18);
      const int64_t window = (row.kernel[axis] - 1) * dilation + 1;
      const bool padded = percent(60);
      row.options.pads.push_back(padded ? draw(0, 4) : 0);
      ends.push_back(padded ? draw(0, 4) : 0);
      const int64_t least = std::max<int64_t>(1, window - row.options.pads.back() - ends.back());
      row.input.push_back(least + draw(0, 20));
      row.options.dilations.push_back(dilation);
      row.options.strides.push_back(percent(50) ? 1 : draw(1, 5));
    }
    row.options.pads.insert(row.options.pads.end(), ends.begin(), ends.end());
    ASSERT_EQ(mistake_of(drawn(row)), "") << i;
  }
}

/// Kernels apply epilogues themselves, and leave out channels that they have done before.
TEST_F(ConvDepthwiseNhwc, Epilogues) {
  for (int64_t channels : {1, 7, 16, 17, 31, 40, 64, 100}) {
    for (int64_t kernel : {1, 3, 5, 7}) {
      for (bool is_signed : {false, true}) {
        const Dims y = {2, draw(1, 20), draw(1, 9), channels};
        const Dims w = {channels, 1, kernel, kernel};
        const Dims by_pixel = {2, y[1], y[2], 1};
        const auto function = parse_function(fmt::format(
            "func @f(%x: {}8{}, %w: {}8{}, %z: {}8[], %a: f32{}, %p: i32{}, %t: u8{}) -> (u8{}, "
            "f32{}) {{\n"
            "  %y = conv_integer %x, %w, %z {{auto_pad = same_upper, group = {}, layout = nhwc}}\n"
            "  %1 = add %y, %p\n  %2 = convert %1 : f32\n  %3 = mul %2, %a\n"
            "  %4 = convert %t : f32\n  %q = add %3, %4\n"
            "  %r = convert %q {{overflow = saturate, rounding = nearest_even}} : u8\n"
            "  return %r, %q\n}}\n",
            is_signed ? "i" : "u", to_string(y), percent(50) ? "i" : "u", to_string(w),
            is_signed ? "i" : "u", to_string(Dims{channels}), to_string(by_pixel), to_string(y),
            to_string(y), to_string(y), channels));
        ASSERT_TRUE(function) << function.error().to_string();
        ASSERT_EQ(mistake_of(*function), "");
      }
    }
  }
}

/// A residual's memory is the result's: what was written is not read again.
TEST_F(ConvDepthwiseNhwc, ResidualsInPlace) {
  for (int64_t channels : {16, 17, 37, 200}) {
    const Dims y = {1, 9, 7, channels};
    const auto function = *parse_function(fmt::format(
        "func @f(%x: u8{}, %w: i8[{}, 1, 3, 3], %t: i32{}) -> i32{} {{\n"
        "  %y = conv_integer %x, %w {{auto_pad = same_upper, group = {}, layout = nhwc}}\n"
        "  %r = add %y, %t\n  return %r\n}}\n",
        to_string(y), channels, to_string(y), to_string(y), channels));
    const std::vector<Patterns> operands = {random_bytes(random_, u8, y),
                                            random_bytes(random_, i8, {channels, 1, 3, 3}),
                                            random_patterns(i32, y)};
    const Patterns expected = interpreted_results(*function, operands).front();
    for (const auto& [tier, runtime] : tier_runtimes()) {
      PlacedTensor x(Placed{operands[0]});
      PlacedTensor w(Placed{operands[1]});
      PlacedTensor t(Placed{operands[2]});
      const std::vector<ConstView> inputs = {x.view(), w.view(), t.view()};
      const std::vector<View> outputs = {t.view()};
      const auto bound = runtime.compile(function)->bind(inputs, outputs);
      ASSERT_TRUE(bound) << bound.error().to_string();
      ASSERT_TRUE(bound->run(inputs, outputs));
      ASSERT_EQ(first_difference(expected, t.take()), "") << name_of(tier) << ", " << channels;
    }
  }
}

/// The form is chosen where it should be: what the other tests run is not another form.
TEST_F(ConvDepthwiseNhwc, FormIsChosen) {
  for (const jit::TierInfo& tier : jit::tier_table()) {
    const jit::Target target{tier.tier};
    for (int64_t kernel = 1; kernel <= 7; ++kernel) {
      for (int64_t stride : {1, 2}) {
        for (int64_t dilation : {1, 2}) {
          for (int64_t channels : {5, 16, 50}) {
            const int64_t pad = (kernel - 1) * dilation / 2;
            const ConvolutionAxis axis = {
                .input = 56,
                .kernel = kernel,
                .stride = stride,
                .dilation = dilation,
                .pad_begin = pad,
                .pad_end = pad,
                .output = (56 + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1};
            const ConvolutionGeometry geometry = {.layout = ConvolutionLayout::nhwc,
                                                  .batch = 1,
                                                  .channels = channels,
                                                  .out_channels = channels,
                                                  .groups = channels,
                                                  .axes = {2, axis}};
            EXPECT_EQ(jit::plan_depthwise_nhwc(geometry, true, target).has_value(),
                      target.has_avx512())
                << kernel << " " << stride << " " << dilation << " " << channels;
          }
        }
      }
    }
  }
}

/// Every kind of code, on tiers that this machine cannot run as well.
TEST_F(ConvDepthwiseNhwc, InstructionsBelongToTheTier) {
  for (const jit::TierInfo& tier : jit::tier_table()) {
    const jit::Target target{tier.tier};
    if (!target.has_avx512()) continue;
    const bool has_vnni = target.supports(jit::Feature::avx512_vnni);
    for (int i = 0; i < 200; ++i) {
      jit::DepthwiseNhwcForm form = {.rows = static_cast<int>(draw(1, 7)),
                                     .row_stride = static_cast<int>(draw(1, 4)),
                                     .columns = static_cast<int>(draw(1, 7)),
                                     .column_stride = static_cast<int>(draw(1, 4)),
                                     .outputs = static_cast<int>(draw(1, 4)),
                                     .is_partial = percent(30),
                                     .flips_input = percent(50),
                                     .subtracts_window_sums = has_vnni && percent(50)};
      form.signed_input = has_vnni && !form.flips_input && percent(50);
      for (int64_t blocks = draw(1, 3); blocks > 0; --blocks) {
        form.blocks.push_back({.outputs = static_cast<int>(draw(1, 8)),
                               .above = static_cast<int>(draw(0, 1)),
                               .below = static_cast<int>(draw(0, 1))});
      }
      if (!jit::fits(form, target)) continue;
      const auto code = jit::emit_depthwise_nhwc_kernel(form, target);
      ASSERT_TRUE(code.ok()) << code.error().message;
      const Status status = jit::check_features(*code, target);
      ASSERT_TRUE(status.ok()) << status.error().message;
      EXPECT_EQ(jit::emit_depthwise_nhwc_kernel(form, target)->bytes, code->bytes);
      EXPECT_LE(code->bytes.size(), size_t{64} << 10);
    }
  }
}

TEST_F(ConvDepthwiseNhwc, TasksGiveTheSameBits) {
  const Depthwise rows[] = {
      {.channels = 300, .input = {7, 7}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 20, .input = {40, 30}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 5, .input = {20'000}, .kernel = {5}, .options = {.pads = {2, 2}}},
  };
  for (const Depthwise& of : rows) {
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
        PlacedTensor y(i32, expected.shape, Placing::at_end);
        const std::vector<View> outputs = {y.view()};
        const auto bound = kernel->bind(inputs, outputs);
        ASSERT_TRUE(bound) << bound.error().to_string();
        ThreadPerTask executor(tasks);
        const RunOptions options = {.executor = tasks == 1 ? nullptr : &executor};
        ASSERT_TRUE(bound->run(inputs, outputs, options));
        const bool is_shared = tasks > 1 && jit::Target{tier}.has_avx512();
        EXPECT_GE(executor.most(), is_shared ? 2 : 1);
        ASSERT_EQ(first_difference(expected, y.take()), "") << name_of(tier) << ", " << tasks;
      }
    }
  }
}

}  // namespace
}  // namespace castor::test
