// SPDX-License-Identifier: Apache-2.0
// Depthwise conv_integer by machine code on every tier, against loops straight from the formula and
// the interpreter, with each tensor at the end or the beginning of its pages.
#include <algorithm>
#include <array>

#include "ir/text.hpp"
#include "jit/conv/depthwise_plan.hpp"
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
  int64_t multiplier = 1;
  Dims input{};
  Dims kernel{};
  ConvolutionOptions options{};
};

class ConvDepthwise : public testing::Test {
 protected:
  int64_t draw(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  bool percent(int64_t chance) { return draw(1, 100) <= chance; }
  ElementType byte() { return byte_types[static_cast<size_t>(draw(0, 1))]; }

  /// Full-range data. Weights of one kind in four are such that they are bytes less any zero point.
  ConvolutionCase drawn(const Depthwise& of, ElementType x_type, ElementType w_type) {
    Dims x = {draw(1, 2), of.channels};
    Dims w = {of.channels * of.multiplier, 1};
    for (int axis = 0; axis < of.input.rank(); ++axis) {
      x.push_back(of.input[axis]);
      w.push_back(of.kernel[axis]);
    }
    ConvolutionCase row{.options = of.options,
                        .x = random_bytes(random_, x_type, x),
                        .w = random_bytes(random_, w_type, w)};
    row.options.group = of.channels;
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

  ConvolutionForm draw_form() {
    return {.unknown_extents = percent(30),
            .constant_weights = percent(50),
            .constant_zero_points = percent(50)};
  }

  /// Runs it with parameters at the ends or beginnings of their pages.
  std::string mistake_of(const ConvolutionCase& row) {
    const ConvolutionForm form = draw_form();
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
  Placing draw_placing() {
    return percent(80) ? Placing::at_end : static_cast<Placing>(draw(0, placings - 1));
  }

  std::mt19937_64 random_{31};
};

/// Rows of every length, so that vectors hold many rows, one, or a part of one.
TEST_F(ConvDepthwise, RowsOfAnyLength) {
  for (int64_t width = 1; width <= 70; ++width) {
    for (int64_t stride = 1; stride <= 3; ++stride) {
      const int64_t kernel = std::min<int64_t>(draw(1, 5), width);
      const Depthwise row = {.channels = draw(1, 4),
                             .input = {draw(1, 12) + 3, width},
                             .kernel = {draw(1, 4), kernel},
                             .options = {.pads = {draw(0, 2), draw(0, 2), draw(0, 2), draw(0, 2)},
                                         .strides = {draw(1, 3), stride}}};
      ASSERT_EQ(mistake_of(drawn(row)), "");
    }
  }
}

TEST_F(ConvDepthwise, KernelsStridesAndDilations) {
  for (int64_t kernel = 1; kernel <= 7; ++kernel) {
    for (int64_t stride = 1; stride <= 3; ++stride) {
      for (int64_t dilation = 1; dilation <= 3; ++dilation) {
        const int64_t rows = draw(1, 7);
        const int64_t row_dilation = draw(1, 3);
        const int64_t window = (kernel - 1) * dilation + 1;
        const int64_t row_window = (rows - 1) * row_dilation + 1;
        const Depthwise row = {.channels = draw(1, 5),
                               .input = {row_window + draw(0, 20), window + draw(0, 40)},
                               .kernel = {rows, kernel},
                               .options = {.dilations = {row_dilation, dilation},
                                           .pads = {draw(0, 4), draw(0, 4), draw(0, 4), draw(0, 4)},
                                           .strides = {draw(1, 3), stride}}};
        ASSERT_EQ(mistake_of(drawn(row)), "");
      }
    }
  }
}

/// Padding larger than the filter, so that vectors and blocks lie outside the image altogether.
TEST_F(ConvDepthwise, LargePadding) {
  for (int i = 0; i < 80; ++i) {
    const Depthwise row = {.channels = draw(1, 3),
                           .input = {draw(1, 9), draw(1, 40)},
                           .kernel = {draw(1, 3), draw(1, 5)},
                           .options = {.dilations = {draw(1, 3), draw(1, 2)},
                                       .pads = {draw(6, 40), draw(6, 70), draw(6, 20), draw(6, 40)},
                                       .strides = {draw(1, 4), draw(1, 4)}}};
    ASSERT_EQ(mistake_of(drawn(row)), "") << i;
  }
}

TEST_F(ConvDepthwise, SeveralOutputsForAChannel) {
  for (int64_t multiplier = 2; multiplier <= 5; ++multiplier) {
    for (int64_t channels : {1, 2, 7, 33}) {
      const Depthwise row = {.channels = channels,
                             .multiplier = multiplier,
                             .input = {draw(3, 9), draw(3, 30)},
                             .kernel = {3, 3},
                             .options = {.pads = {1, 1, 1, 1}}};
      ASSERT_EQ(mistake_of(drawn(row)), "");
    }
  }
}

/// Lines, volumes and beyond.
TEST_F(ConvDepthwise, OtherNumbersOfAxes) {
  for (int axes : {1, 3, 4}) {
    for (int i = 0; i < 60; ++i) {
      Depthwise row = {.channels = draw(1, 4), .multiplier = draw(1, 2)};
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
      ASSERT_EQ(mistake_of(drawn(row)), "") << axes << " axes, " << i;
    }
  }
}

/// Images of several blocks and pieces, and lines of several parts.
TEST_F(ConvDepthwise, LargeImages) {
  const Depthwise rows[] = {
      {.channels = 3, .input = {112, 112}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 2, .input = {150, 131}, .kernel = {5, 5}, .options = {.pads = {2, 2, 2, 2}}},
      {.channels = 2, .input = {33, 700}, .kernel = {7, 7}, .options = {.pads = {3, 3, 3, 3}}},
      {.channels = 2,
       .input = {90, 300},
       .kernel = {3, 3},
       .options = {.dilations = {2, 2}, .pads = {2, 2, 2, 2}}},
      {.channels = 2,
       .input = {131, 140},
       .kernel = {3, 3},
       .options = {.pads = {1, 1, 1, 1}, .strides = {2, 2}}},
      {.channels = 2, .input = {5, 20'000}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 2, .input = {40'000}, .kernel = {9}, .options = {.pads = {4, 4}}},
      {.channels = 40, .input = {14, 14}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 90, .input = {7, 7}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 2,
       .input = {9, 40, 60},
       .kernel = {3, 3, 3},
       .options = {.pads = {1, 1, 1, 1, 1, 1}}},
  };
  for (const Depthwise& row : rows) ASSERT_EQ(mistake_of(drawn(row)), "");
}

TEST_F(ConvDepthwise, SignsAndZeroPoints) {
  enum Zero { none, scalar, per_channel };
  const Depthwise of = {
      .channels = 5, .input = {8, 21}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}};
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
TEST_F(ConvDepthwise, Extremes) {
  const Depthwise of = {
      .channels = 2, .input = {9, 35}, .kernel = {7, 7}, .options = {.pads = {3, 3, 3, 3}}};
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

TEST_F(ConvDepthwise, AnythingAtRandom) {
  for (int i = 0; i < 600; ++i) {
    const int axes = static_cast<int>(draw(1, 3));
    Depthwise row = {.channels = draw(1, 9), .multiplier = percent(70) ? 1 : draw(2, 4)};
    std::vector<int64_t> ends;
    for (int axis = 0; axis < axes; ++axis) {
      row.kernel.push_back(draw(1, percent(20) ? 7 : 3));
      const int64_t dilation = percent(60) ? 1 : draw(1, 6);
      const int64_t window = (row.kernel[axis] - 1) * dilation + 1;
      const bool padded = percent(60);
      row.options.pads.push_back(padded ? draw(0, 4) : 0);
      ends.push_back(padded ? draw(0, 4) : 0);
      const int64_t least = std::max<int64_t>(1, window - row.options.pads.back() - ends.back());
      row.input.push_back(least + draw(0, 40 / axes));
      row.options.dilations.push_back(dilation);
      row.options.strides.push_back(percent(50) ? 1 : draw(1, 5));
    }
    row.options.pads.insert(row.options.pads.end(), ends.begin(), ends.end());
    ASSERT_EQ(mistake_of(drawn(row)), "") << i;
  }
}

/// The form is chosen where it should be: what the other tests run is not another form.
TEST_F(ConvDepthwise, FormIsChosen) {
  const auto is_served = [](const jit::Target& target, const ConvolutionAxis& axis, int axes) {
    const ConvolutionGeometry geometry = {.batch = 1,
                                          .channels = 8,
                                          .out_channels = 8,
                                          .groups = 8,
                                          .axes = {static_cast<size_t>(axes), axis}};
    return jit::plan_depthwise(geometry, true, target).has_value();
  };
  for (const jit::TierInfo& tier : jit::tier_table()) {
    const jit::Target target{tier.tier};
    for (int64_t kernel = 1; kernel <= 7; ++kernel) {
      for (int64_t width : {7, 14, 56, 112, 500}) {
        for (int axes = 1; axes <= 3; ++axes) {
          const ConvolutionAxis plain = {.input = width,
                                         .kernel = kernel,
                                         .pad_begin = kernel / 2,
                                         .pad_end = kernel / 2,
                                         .output = width - kernel + 1 + kernel / 2 * 2};
          ConvolutionAxis strided = plain;
          strided.stride = 2;
          strided.output = (plain.output + 1) / 2;
          ConvolutionAxis dilated = plain;
          dilated.dilation = 2;
          dilated.pad_begin = dilated.pad_end = kernel - 1;
          dilated.output = width;
          EXPECT_EQ(is_served(target, plain, axes), target.has_avx512()) << kernel << " " << width;
          EXPECT_EQ(is_served(target, strided, axes), target.has_avx512());
          EXPECT_EQ(is_served(target, dilated, axes), target.has_avx512());
        }
      }
    }
  }
}

/// Every kind of code, on tiers that this machine cannot run as well.
TEST_F(ConvDepthwise, InstructionsBelongToTheTier) {
  for (const jit::TierInfo& tier : jit::tier_table()) {
    const jit::Target target{tier.tier};
    if (!target.has_avx512()) continue;
    const bool has_vnni = target.supports(jit::Feature::avx512_vnni);
    for (int i = 0; i < 200; ++i) {
      jit::DepthwiseForm form = {.rows = static_cast<int>(draw(1, 7)),
                                 .row_stride = static_cast<int>(draw(1, 4)),
                                 .dwords = static_cast<int>(draw(1, 4)),
                                 .dword_step = static_cast<int>(draw(0, 1)) * 8,
                                 .source_bytes = percent(50) ? 32 : 64,
                                 .flips_input = percent(50),
                                 .subtracts_window_sums = has_vnni && percent(50),
                                 .adds = percent(50)};
      form.signed_input = has_vnni && !form.flips_input && percent(50);
      for (int64_t blocks = draw(1, 3); blocks > 0; --blocks) {
        form.blocks.push_back({.outputs = static_cast<int>(draw(1, 8)),
                               .above = static_cast<int>(draw(0, 1)),
                               .guarded_above = static_cast<int>(draw(0, 1)),
                               .masks_rows = percent(50)});
      }
      if (!jit::fits(form, target)) continue;
      const auto code = jit::emit_depthwise_kernel(form, target);
      ASSERT_TRUE(code.ok()) << code.error().message;
      const Status status = jit::check_features(*code, target);
      ASSERT_TRUE(status.ok()) << status.error().message;
      EXPECT_EQ(jit::emit_depthwise_kernel(form, target)->bytes, code->bytes);
      EXPECT_LE(code->bytes.size(), size_t{32} << 10);
    }
  }
}

TEST_F(ConvDepthwise, TasksGiveTheSameBits) {
  const Depthwise rows[] = {
      {.channels = 40, .input = {14, 14}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 3, .input = {112, 112}, .kernel = {3, 3}, .options = {.pads = {1, 1, 1, 1}}},
      {.channels = 1, .input = {70'000}, .kernel = {5}, .options = {.pads = {2, 2}}},
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
