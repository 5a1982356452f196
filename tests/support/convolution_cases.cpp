// SPDX-License-Identifier: Apache-2.0
// Random convolutions.
#include <algorithm>

#include "tests/support/convolution_cases.hpp"

namespace castor::test {

namespace {

class Draw {
 public:
  explicit Draw(std::mt19937_64& random) : random_(random) {}
  int64_t from(int64_t min, int64_t max) {
    return min + static_cast<int64_t>(random_() % static_cast<uint64_t>(max - min + 1));
  }
  bool percent(int64_t chance) { return from(1, 100) <= chance; }
  ElementType byte() { return percent(50) ? ElementType::i8 : ElementType::u8; }

  Patterns tensor(ElementType type, const Dims& shape) {
    Patterns result{type, shape, {}};
    const int64_t kind = from(0, 9);
    const auto extreme = static_cast<uint64_t>(from(0, 255));
    for (int64_t i = element_count(shape).value(); i > 0; --i) {
      const bool fixed = kind == 0 || (kind == 1 && percent(80));
      result.elements.push_back(fixed ? extreme : static_cast<uint64_t>(from(0, 255)));
    }
    return result;
  }

 private:
  std::mt19937_64& random_;
};

/// What is drawn of one spatial axis.
struct DrawnAxis {
  int64_t input, kernel, stride, dilation, begin, end;
};

DrawnAxis draw_axis(Draw& draw, bool padded, int64_t max_input) {
  DrawnAxis axis{.input = draw.from(1, max_input),
                 .kernel = draw.from(1, draw.percent(20) ? 7 : 3),
                 .stride = draw.percent(50) ? 1 : draw.from(1, 4),
                 .dilation = draw.percent(60) ? 1 : draw.from(1, 3),
                 .begin = padded ? draw.from(0, 3) : 0,
                 .end = padded ? draw.from(0, 3) : 0};
  const int64_t window = (axis.kernel - 1) * axis.dilation + 1;
  const int64_t missing = window - axis.begin - axis.end - axis.input;
  if (missing > 0) axis.input += missing;
  return axis;
}

/// Draws one convolution: attributes, then the operands' shapes along with them, then data.
class CaseDraw {
 public:
  CaseDraw(Draw& draw, const ConvolutionLimits& limits)
      : draw_(draw), axes_(static_cast<int>(draw.from(1, limits.max_spatial_axes))) {}

  ConvolutionCase run() {
    draw_channels();
    draw_axes();
    ConvolutionCase row{.options = options_,
                        .x = draw_.tensor(draw_.byte(), x_),
                        .w = draw_.tensor(draw_.byte(), w_)};
    if (draw_.percent(60)) row.x_zero_point = draw_.tensor(row.x.type, scalar());
    if (draw_.percent(60)) {
      const Dims shape = draw_.percent(50) ? Dims{w_[0]} : scalar();
      row.w_zero_point = draw_.tensor(row.w.type, shape);
    }
    return row;
  }

 private:
  int64_t rarely_zero(int64_t max) { return draw_.from(draw_.percent(3) ? 0 : 1, max); }
  Dims scalar() { return draw_.percent(50) ? Dims{} : Dims{1}; }

  void draw_channels() {
    if (draw_.percent(50)) options_.group = draw_.from(1, 6);
    const bool depthwise = options_.group > 1 && draw_.percent(50);
    const int64_t channels = depthwise ? 1 : rarely_zero(9);
    w_ = {options_.group * rarely_zero(5), channels};
    x_ = {rarely_zero(3), options_.group * channels};
  }

  void draw_axes() {
    if (draw_.percent(50)) options_.auto_pad = static_cast<AutoPad>(draw_.from(0, 3));
    const bool padded = options_.auto_pad == AutoPad::notset && draw_.percent(70);
    const bool strided = draw_.percent(60);
    const bool dilated = draw_.percent(50);
    std::vector<int64_t> ends;
    for (int i = 0; i < axes_; ++i) {
      const DrawnAxis axis = draw_axis(draw_, padded, axes_ == 1 ? 40 : 12 / axes_ + 3);
      if (strided) options_.strides.push_back(axis.stride);
      if (dilated) options_.dilations.push_back(axis.dilation);
      if (padded) options_.pads.push_back(axis.begin);
      if (padded) ends.push_back(axis.end);
      x_.push_back(axis.input);
      w_.push_back(axis.kernel);
    }
    options_.pads.insert(options_.pads.end(), ends.begin(), ends.end());
    if (draw_.percent(50)) options_.kernel_shape.assign(w_.begin() + 2, w_.end());
    options_.layout = static_cast<ConvolutionLayout>(draw_.from(0, 1));
    if (options_.layout == ConvolutionLayout::nhwc) {
      std::rotate(x_.begin() + 1, x_.begin() + 2, x_.end());
    }
  }

  Draw& draw_;
  const int axes_;
  ConvolutionOptions options_;
  Dims x_;
  Dims w_;
};

/// The number of products at stride 1 with an output for each input position.
int64_t products_of(const ConvolutionCase& row) {
  const int64_t channels = std::max<int64_t>(1, row.options.group * row.w.shape[1]);
  const int64_t positions = element_count(row.x.shape).value() / channels;
  return element_count(row.w.shape).value() * positions;
}

}  // namespace

std::vector<Patterns> ConvolutionCase::operands() const {
  std::vector<Patterns> all = {x, w};
  if (x_zero_point) all.push_back(*x_zero_point);
  if (w_zero_point) all.push_back(*w_zero_point);
  return all;
}

FunctionPtr function_of(const ConvolutionCase& row, bool unknown_extents) {
  return function_of(row, ConvolutionForm{.unknown_extents = unknown_extents});
}

FunctionPtr function_of(const ConvolutionCase& row, const ConvolutionForm& form) {
  FunctionBuilder builder("convolution");
  const auto operand = [&](const char* name, const Patterns& tensor, bool is_constant) {
    if (is_constant) {
      return builder.constant({tensor.type, to_shape(tensor.shape)},
                              samples::pack(tensor.type, tensor.elements));
    }
    const auto rank = static_cast<size_t>(tensor.shape.rank());
    return builder.parameter(name, {tensor.type, form.unknown_extents ? Shape(rank, Dim::any())
                                                                      : to_shape(tensor.shape)});
  };
  const auto zero_point = [&](const char* name, const std::optional<Patterns>& tensor) {
    return tensor ? operand(name, *tensor, form.constant_zero_points) : no_value;
  };
  const ValueId x = operand("x", row.x, false);
  const ValueId w = operand("w", row.w, form.constant_weights);
  const ValueId x_zero = zero_point("xz", row.x_zero_point);
  const ValueId w_zero = zero_point("wz", row.w_zero_point);
  builder.result(builder.conv_integer(x, w, row.options, x_zero, w_zero));
  const Result<FunctionPtr> function = builder.finish();
  EXPECT_TRUE(function) << function.error().to_string();
  return function ? *function : nullptr;
}

std::vector<Patterns> parameters_of(const ConvolutionCase& row, const ConvolutionForm& form) {
  std::vector<Patterns> parameters = {row.x};
  if (!form.constant_weights) parameters.push_back(row.w);
  if (form.constant_zero_points) return parameters;
  if (row.x_zero_point) parameters.push_back(*row.x_zero_point);
  if (row.w_zero_point) parameters.push_back(*row.w_zero_point);
  return parameters;
}

Patterns random_bytes(std::mt19937_64& random, ElementType type, const Dims& shape) {
  return Draw(random).tensor(type, shape);
}

ConvolutionCase random_convolution(std::mt19937_64& random, const ConvolutionLimits& limits) {
  Draw draw(random);
  while (true) {
    ConvolutionCase row = CaseDraw(draw, limits).run();
    if (products_of(row) <= limits.max_products) return row;
  }
}

}  // namespace castor::test
