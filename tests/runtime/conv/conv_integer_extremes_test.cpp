// SPDX-License-Identifier: Apache-2.0
// Convolutions whose strides, dilations and pads are as large as numbers get, whose kernels exceed
// the input, or that have very many channels.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "ir/text/text.hpp"
#include "tests/support/convolution_loops.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/placed_tensors.hpp"
#include "tools/fuzz/draw_axis.hpp"

namespace castor::test {
namespace {

using enum ElementType;

/// Runs a case by machine code on every tier, operands between guard pages, and by the interpreter
/// where that takes no time.
std::string mistake_of(const ConvolutionCase& row, const ConvolutionForm& form = {}) {
  const FunctionPtr function = function_of(row, form);
  if (!function) return "no function";
  std::vector<Placed> operands;
  for (const Patterns& tensor : parameters_of(row, form)) {
    operands.push_back({tensor, operands.size() % 2 == 0 ? Placing::at_end : Placing::at_begin});
  }
  const Patterns expected = ConvolutionLoops(row).all();
  std::string mistake = mistake_on_tiers(function, operands, {{expected, Placing::at_end}});
  if (mistake.empty() && row.w.elements.size() < 1000) {
    const auto results = interpreted_results(*function, parameters_of(row, form));
    mistake = first_difference(expected, results.at(0));
  }
  return mistake.empty() ? "" : mistake + "\n" + print(*function);
}

class ConvExtremes : public testing::Test {
 protected:
  int64_t draw(int64_t min, int64_t greatest) {
    return min + static_cast<int64_t>(random_() % static_cast<uint64_t>(greatest - min + 1));
  }
  bool percent(int64_t chance) { return draw(1, 100) <= chance; }
  ElementType draw_byte() { return percent(50) ? u8 : i8; }
  ConvolutionForm draw_form() {
    return {.unknown_extents = percent(50),
            .constant_weights = percent(50),
            .constant_zero_points = percent(50)};
  }

  ConvolutionCase drawn(const Dims& x, const Dims& w, ConvolutionOptions options) {
    const ElementType x_type = draw_byte();
    const ElementType w_type = draw_byte();
    return {.options = std::move(options),
            .x = random_bytes(random_, x_type, x),
            .w = random_bytes(random_, w_type, w),
            .x_zero_point = random_bytes(random_, x_type, {}),
            .w_zero_point = random_bytes(random_, w_type, {w[0]})};
  }

  ConvolutionCase draw_case() {
    ConvolutionOptions options;
    if (percent(40)) options.layout = ConvolutionLayout::nhwc;
    const int64_t axes = draw(1, 3);
    const bool is_depthwise = percent(25);
    const int64_t channels = percent(30) ? draw(1, 3) : draw(4, 20);
    Dims x = {draw(1, 2), channels};
    Dims w = {is_depthwise ? channels : draw(1, 18), is_depthwise ? 1 : channels};
    if (is_depthwise) options.group = channels;
    std::vector<int64_t> ends;
    for (int64_t i = 0; i < axes; ++i) {
      const ConvolutionAxis axis = fuzz::draw_extreme_axis(numbers_, draw(1, 6));
      x.push_back(axis.input);
      w.push_back(axis.kernel);
      options.strides.push_back(axis.stride);
      options.dilations.push_back(axis.dilation);
      options.pads.push_back(axis.pad_begin);
      ends.push_back(axis.pad_end);
    }
    options.pads.insert(options.pads.end(), ends.begin(), ends.end());
    if (options.layout == ConvolutionLayout::nhwc)
      std::rotate(x.begin() + 1, x.begin() + 2, x.end());
    return drawn(x, w, options);
  }

  std::mt19937_64 random_{31};
  fuzz::Random numbers_{31};
};

/// An axis with one output has any stride.
TEST_F(ConvExtremes, StridesOfOneOutput) {
  for (const int64_t stride : {INT64_MAX, INT64_MAX / 2 + 1, INT64_MAX / 3 + 1, int64_t{1} << 62}) {
    for (int64_t width = 2; width <= 5; ++width) {
      ASSERT_EQ(mistake_of(drawn({1, 5, 2, width}, {16, 5, 2, 2}, {.strides = {stride, 1}})), "");
      ASSERT_EQ(mistake_of(drawn({1, 5, width, 2}, {16, 5, 2, 2}, {.strides = {1, stride}})), "");
    }
  }
}

/// Only the paddings make room for more than one output.
TEST_F(ConvExtremes, StridesPadsAndDilations) {
  for (int i = 0; i < 1500; ++i) ASSERT_EQ(mistake_of(draw_case(), draw_form()), "") << i;
}

/// Everything about them is checked, and there is nothing to compute.
TEST_F(ConvExtremes, KernelsLargerThanTheInput) {
  for (int i = 0; i < 200; ++i) {
    const int64_t stride = draw(1, 5);
    const int64_t kernel = draw(2, 6);
    const int64_t padded = std::max<int64_t>(kernel - draw(1, stride), 1);
    const int64_t begin = draw(0, padded - 1);
    const int64_t other = draw(1, 9);
    const ConvolutionCase row = drawn({2, 3, padded - begin, other}, {draw(1, 20), 3, kernel, 1},
                                      {.pads = {begin, 0, 0, 0}, .strides = {stride, 1}});
    ASSERT_EQ(ConvolutionLoops(row).shape()[2], padded < kernel ? 0 : 1);
    ASSERT_EQ(mistake_of(row, draw_form()), "");
  }
}

// ---- Very many channels.

/// More k steps than plans list, so that kernels loop over k groups: the last one may be partial.
TEST_F(ConvExtremes, ManyChannels) {
  constexpr int64_t channels = (int64_t{1} << 17) + 3;
  ASSERT_EQ(mistake_of(drawn({1, channels, 3, 4}, {3, channels, 3, 3}, {.pads = {1, 1, 1, 0}})),
            "");
  ASSERT_EQ(mistake_of(drawn({1, channels, 3, 2, 4}, {2, channels / 1, 2, 3, 2},
                             {.pads = {1, 0, 1, 0, 1, 0}, .strides = {1, 1, 2}}),
                       {.constant_weights = true}),
            "");
  ASSERT_EQ(mistake_of(drawn(
                {1, 3, 4, channels}, {3, channels, 3, 3},
                {.layout = ConvolutionLayout::nhwc, .dilations = {1, 2}, .pads = {1, 1, 1, 1}})),
            "");
}

/// Window sums that exceed 2^31: numbers are exact modulo 2^32, whatever is added up.
TEST_F(ConvExtremes, WindowSumsWrapAround) {
  constexpr int64_t channels = 9'000'001;
  struct ZeroPoint {
    ElementType type;
    uint64_t code;
  };
  for (const ZeroPoint& zero : {ZeroPoint{u8, 7}, {u8, 255}, {i8, 0x80}}) {
    ConvolutionCase row = drawn({1, channels, 1, 1}, {1, channels, 1, 1}, {});
    row.x.type = u8;
    row.w.type = zero.type;
    row.x_zero_point = Patterns{u8, {}, {0}};
    row.w_zero_point = Patterns{zero.type, {}, {zero.code}};
    std::ranges::fill(row.x.elements, 255);
    ASSERT_EQ(mistake_of(row), "") << name_of(zero.type) << ' ' << zero.code;
  }
}

/// The high-water mark of resident memory, in bytes.
int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  }
  return 0;
}

/// Lets the high-water mark be what is resident now; false where the system refuses.
bool reset_peak() {
  return static_cast<bool>(std::ofstream("/proc/self/clear_refs") << 5 << std::flush);
}

/// Binding takes time and memory for the taps of the filter, not for its channels (but for scratch,
/// which is as large as the input, and the caller's here).
TEST_F(ConvExtremes, BindingManyChannelsTakesLittle) {
  for (const std::string layout : {"nchw", "nhwc"}) {
    const std::string text = fmt::format(
        "func @wide(%x: u8[1, ?, ?, ?], %w: i8[?, ?, ?, ?]) -> (i32[1, ?, ?, ?]) {{\n"
        "  %y = conv_integer %x, %w {{layout = {}}}\n  return %y\n}}\n",
        layout);
    for (const auto& [tier, runtime] : tier_runtimes()) {
      const Kernel kernel = runtime.compile(text).value();
      constexpr int64_t channels = int64_t{1} << 28;
      const Dims x = layout == "nchw" ? Dims{1, channels, 1, 1} : Dims{1, 1, 1, channels};
      ASSERT_TRUE(reset_peak());
      const int64_t before = peak_resident_bytes();
      const auto start = std::chrono::steady_clock::now();
      const Result<BoundKernel> bound =
          kernel.bind({x, {1, channels, 1, 1}}, {.scratch = ScratchOwner::caller});
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      ASSERT_TRUE(bound.ok()) << bound.error().to_string();
      EXPECT_LT(peak_resident_bytes() - before, int64_t{32} << 20) << layout << name_of(tier);
      EXPECT_LT(seconds.count(), 0.5) << layout << name_of(tier);
    }
  }
}

}  // namespace
}  // namespace castor::test
