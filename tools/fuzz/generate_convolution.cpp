// SPDX-License-Identifier: Apache-2.0
// Drawing `conv_integer`: geometries of a few thousand products with all attributes, and functions
// around them.
#include "tools/fuzz/generate_convolution.hpp"

#include <algorithm>

#include "tools/fuzz/draw_axis.hpp"
#include "tools/fuzz/generate.hpp"
#include "tools/fuzz/generate_operations.hpp"

namespace castor::fuzz {

namespace {

constexpr int64_t max_products = 20'000;
/// The same for layers that are deep and wide enough for tile registers.
constexpr int64_t max_products_of_wide = 300'000;
constexpr int min_rank = 3;
/// Images with no fewer rows and columns than this get pointwise convolutions of as many outputs as
/// are allowed, or half of them: often several tiles of channels, of which one packs the pixels for
/// the others.
constexpr int64_t min_large_extent = 10;
constexpr int64_t max_large_extent = 14;

/// A divisor; often 1, at times the number itself.
int64_t draw_group(Random& random, int64_t channels) {
  if (channels == 0 || random.percent(55)) return 1;
  if (random.percent(30)) return channels;
  std::vector<int64_t> divisors;
  for (int64_t divisor = 1; divisor <= channels; ++divisor) {
    if (channels % divisor == 0) divisors.push_back(divisor);
  }
  return random.pick(divisors);
}

/// Draws the kernel and the attributes of a convolution of x.
class ConvolutionDraw {
 public:
  ConvolutionDraw(Random& random, const Dims& x) : random_(random) {
    drawn_.x = x;
    spatial_axes_ = x.rank() - 2;
  }

  DrawnConvolution take() {
    if (is_large()) return pointwise();
    for (int attempt = 0; attempt < 20; ++attempt) {
      drawn_.options = {};
      products_ = 1;
      draw_channels();
      draw_axes();
      if (products_ <= (is_wide_ ? max_products_of_wide : max_products)) break;
    }
    return drawn_;
  }

 private:
  int64_t extent(int spatial_axis) const { return drawn_.x[spatial_axis + (is_last() ? 1 : 2)]; }
  bool is_last() const { return drawn_.options.layout == ConvolutionLayout::nhwc; }

  bool is_large() const {
    return spatial_axes_ == 2 && std::min(drawn_.x[2], drawn_.x[3]) >= min_large_extent;
  }

  DrawnConvolution pointwise() {
    const int64_t pixels = std::max<int64_t>(drawn_.x[0], 1) * drawn_.x[2] * drawn_.x[3];
    const int64_t max_outputs = std::max<int64_t>(max_elements / pixels, 1);
    drawn_.w = {random_.between((max_outputs + 1) / 2, max_outputs), drawn_.x[1], 1, 1};
    return drawn_;
  }

  void draw_channels() {
    ConvolutionOptions& options = drawn_.options;
    if (random_.percent(40)) options.layout = ConvolutionLayout::nhwc;
    const int64_t channels = drawn_.x[is_last() ? drawn_.x.rank() - 1 : 1];
    is_wide_ = channels > 16 && random_.percent(60);
    options.group = is_wide_ && random_.percent(70) ? 1 : draw_group(random_, channels);
    const int64_t outputs = is_wide_             ? random_.between(17, 80)
                            : random_.percent(2) ? 0
                                                 : random_.between(1, random_.percent(20) ? 20 : 5);
    drawn_.w = {options.group * outputs, channels / options.group};
    products_ *= std::max<int64_t>(1, drawn_.x[0]) * drawn_.w[0] * drawn_.w[1];
  }

  /// Which attributes are written.
  struct Written {
    bool pads, strides, dilations;
  };

  void draw_axes() {
    ConvolutionOptions& options = drawn_.options;
    const bool is_extreme = random_.percent(8);
    if (!is_extreme && random_.percent(40)) {
      options.auto_pad = static_cast<AutoPad>(random_.below(4));
    }
    const Written written = {
        is_extreme || (options.auto_pad == AutoPad::notset && random_.percent(60)),
        is_extreme || random_.percent(50), is_extreme || random_.percent(40)};
    std::vector<int64_t> ends;
    for (int i = 0; i < spatial_axes_; ++i) {
      const ConvolutionAxis axis = is_extreme && random_.percent(70)
                                       ? draw_extreme_axis(random_, extent(i))
                                       : draw_axis(extent(i), written);
      drawn_.w.push_back(axis.kernel);
      products_ *= axis.kernel * std::max<int64_t>(1, axis.output);
      if (written.strides) options.strides.push_back(axis.stride);
      if (written.dilations) options.dilations.push_back(axis.dilation);
      if (written.pads) options.pads.push_back(axis.pad_begin);
      if (written.pads) ends.push_back(axis.pad_end);
    }
    options.pads.insert(options.pads.end(), ends.begin(), ends.end());
    if (random_.percent(40)) options.kernel_shape.assign(drawn_.w.begin() + 2, drawn_.w.end());
  }

  /// `output` is that at a stride of 1, about. At times the kernel exceeds the padded input.
  ConvolutionAxis draw_axis(int64_t input, const Written& written) {
    const int64_t max_pad = random_.percent(15) ? 9 : 2;
    ConvolutionAxis axis{.input = input, .kernel = random_.between(1, random_.percent(12) ? 7 : 3)};
    if (written.pads) axis.pad_begin = random_.between(0, max_pad);
    if (written.pads) axis.pad_end = random_.between(0, max_pad);
    if (written.dilations) axis.dilation = random_.between(1, 4);
    if (written.strides) {
      axis.stride = random_.percent(4) ? draw_magnitude(random_, INT64_MAX) : random_.between(1, 4);
    }
    axis.output = axis.input + axis.pad_begin + axis.pad_end;
    const AutoPad auto_pad = drawn_.options.auto_pad;
    const bool is_same = auto_pad == AutoPad::same_upper || auto_pad == AutoPad::same_lower;
    const int64_t beyond = random_.percent(10) ? std::min<int64_t>(axis.stride, 7) : 0;
    if (!is_same && axis.window() > axis.output + beyond) {
      axis.kernel = std::clamp<int64_t>(axis.output, 1, axis.kernel);
      axis.dilation = 1;
    }
    return axis;
  }

  Random& random_;
  DrawnConvolution drawn_;
  int spatial_axes_;
  int64_t products_ = 1;  ///< at strides of 1, about
  bool is_wide_ = false;
};

constexpr std::array byte_types = {ElementType::u8, ElementType::i8};

bool is_byte(ElementType type) { return admits(OperandClass::byte, type); }

}  // namespace

Dims draw_image(Random& random) {
  if (random.percent(6)) {
    const auto extent = [&] { return random.between(min_large_extent, max_large_extent); };
    return {1, 4 * random.between(1, 3), extent(), extent()};
  }
  const int axes = static_cast<int>(1 + random.below(random.percent(80) ? 2 : max_drawn_rank - 2));
  const bool has_many_channels = random.percent(25);
  Dims shape = {random.between(random.percent(2) ? 0 : 1, random.percent(70) ? 1 : 3),
                !has_many_channels   ? random.between(random.percent(2) ? 0 : 1, 9)
                : random.percent(50) ? 16 * random.between(2, 8)
                                     : random.between(17, 130)};
  const bool is_long = axes == 1 && random.percent(50);
  const int64_t longest = has_many_channels ? (is_long ? 36 : 12 / axes)
                          : axes == 1       ? 70
                                            : 14 / axes + 2;
  for (int axis = 0; axis < axes; ++axis) {
    shape.push_back(random.between(random.percent(2) ? 0 : 1, longest));
  }
  if (random.percent(30)) std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
  return shape;
}

DrawnConvolution draw_convolution(Random& random, const Dims& x) {
  return ConvolutionDraw(random, x).take();
}

/// The value itself if it is of bytes, else converted to them.
size_t OperationDrawer::as_bytes(size_t value) {
  return is_byte(program_.element_of(value)) ? value : converted(value, random_.pick(byte_types));
}

/// The value in that type; without a value, a constant or nothing.
size_t OperationDrawer::zero_point(std::optional<size_t> value, ElementType type,
                                   const Dims& shape) {
  if (value) {
    const size_t same = converted(*value, type);
    return program_.element_of(same) == type ? same : no_operand;
  }
  return random_.percent(60) && add_constant(type, shape) ? last() : no_operand;
}

bool OperationDrawer::convolve(size_t x, const DrawnConvolution& drawn,
                               const ConvolutionOperands& given) {
  x = as_bytes(x);
  if (!is_byte(program_.element_of(x))) return false;
  if (!given.w && !add_constant(random_.pick(byte_types), drawn.w)) return false;
  const size_t w = given.w ? as_bytes(*given.w) : last();
  if (!is_byte(program_.element_of(w))) return false;
  const auto scalar = [&] { return random_.percent(50) ? Dims{} : Dims{1}; };
  const size_t x_zero = zero_point(given.x_zero, program_.element_of(x), scalar());
  const size_t w_zero = zero_point(given.w_zero, program_.element_of(w),
                                   random_.percent(60) ? Dims{drawn.w[0]} : scalar());
  OperationSpec operation{.op = OpKind::conv_integer,
                          .operands = {x, w, x_zero, w_zero},
                          .attributes = attributes_of(drawn.options)};
  while (operation.operands.back() == no_operand && random_.percent(80)) {
    operation.operands.pop_back();
  }
  return add(std::move(operation));
}

/// A convolution of a value that has spatial axes, with constant weights.
bool OperationDrawer::convolve_any() {
  std::vector<size_t> images;
  for (size_t value : values_of(OperandClass::any)) {
    if (program_.shape_of(value).rank() >= min_rank) images.push_back(value);
  }
  if (images.empty()) return false;
  const size_t x = pick_value(images);
  return convolve(x, draw_convolution(random_, program_.shape_of(x)), {});
}

void OperationDrawer::draw_convolution_of(ElementType x_type) {
  const DrawnConvolution drawn = draw_convolution(random_, draw_image(random_));
  space_ = drawn.x;
  const auto element = [&] {
    return random_.percent(70) ? random_.pick(byte_types) : draw_element(random_);
  };
  const size_t x = add_input(x_type, drawn.x);
  ConvolutionOperands given;
  if (random_.percent(50)) given.w = add_input(element(), drawn.w);
  if (random_.percent(30))
    given.x_zero = add_input(element(), random_.percent(50) ? Dims{} : Dims{1});
  if (random_.percent(30)) {
    given.w_zero = add_input(element(), random_.percent(60) ? Dims{drawn.w[0]} : Dims{});
  }
  if (random_.percent(30)) add_input(random_.pick(palette_));
  if (random_.percent(40)) draw_many(1 + random_.below(3));
  const bool is_last_alike = program_.shape_of(last()) == drawn.x;
  const size_t image = is_last_alike && random_.percent(70) ? last() : x;
  if (!convolve(image, drawn, given)) return;
  space_ = program_.shape_of(last());
  if (random_.percent(60)) draw_many(1 + random_.below(5));
  if (!random_.percent(25)) return;
  convolve_any();
  if (random_.percent(50)) draw_many(1 + random_.below(3));
}

void draw_convolutions(Random& random, Program& program) {
  OperationDrawer drawer(random, program);
  const auto type = [&] {
    return random.percent(70) ? random.pick(byte_types) : draw_element(random);
  };
  if (random.percent(35)) {
    drawer.draw_matmul_of(type());
  } else if (random.percent(50)) {
    drawer.draw_epilogue(draw_epilogue_cell(random));
  } else {
    drawer.draw_convolution_of(type());
  }
  if (program.operations.empty()) drawer.draw(OpKind::convert);
  drawer.draw_results();
  program.excess_precision = random.percent(12);
}

}  // namespace castor::fuzz
