// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/problem.hpp"

#include <algorithm>
#include <numeric>

#include "ir/support/integer_math.hpp"

namespace castor::jit {

namespace {

ConvolutionAxis plain_axis(ConvolutionAxis axis) {
  if (axis.output <= 1) axis.stride = 1;
  if (axis.kernel == 1) axis.dilation = 1;
  return axis;
}

/// Positions that the outputs of an axis take, or the axis has, padding included.
int64_t positions_of(const ConvolutionAxis& axis) {
  const int64_t taken =
      saturated_sum(saturated_product(axis.output - 1, axis.stride), axis.window());
  return std::max({taken, axis.output, saturated_sum(axis.input, axis.pad_begin)});
}

}  // namespace

bool is_pointwise(const ConvolutionAxis& axis) {
  return axis.kernel == 1 && axis.stride == 1 && axis.pad_begin == 0 && axis.input == axis.output;
}

ConvolutionGeometry with_joined_images(const ConvolutionGeometry& geometry) {
  const bool joins = geometry.layout == ConvolutionLayout::nhwc && geometry.batch > 1 &&
                     !geometry.has_weights_by_image &&
                     std::ranges::all_of(geometry.axes, is_pointwise);
  int64_t pixels = geometry.batch;
  for (const ConvolutionAxis& axis : geometry.axes) pixels = saturated_product(pixels, axis.output);
  if (!joins || pixels > max_plane_positions) return geometry;
  ConvolutionGeometry joined = geometry;
  joined.batch = 1;
  joined.axes = {{.input = pixels, .kernel = 1, .output = pixels}};
  return joined;
}

PlaneAxes plane_axes(const ConvolutionGeometry& geometry) {
  const size_t count = geometry.axes.size();
  const ConvolutionAxis one = {.input = 1, .kernel = 1, .output = 1};
  PlaneAxes axes;
  axes.columns = plain_axis(geometry.axes[count - 1]);
  axes.rows = count > 1 ? plain_axis(geometry.axes[count - 2]) : one;
  for (size_t axis = 0; axis + 2 < count; ++axis) {
    axes.slices *= geometry.axes[axis].kernel;
    axes.outer_outputs *= geometry.axes[axis].output;
  }
  return axes;
}

AxisPhases phases_of(const ConvolutionAxis& axis) {
  if (axis.kernel == 1) return {.step = axis.stride};
  const int64_t shared = std::gcd(axis.dilation, axis.stride);
  return {axis.dilation, axis.dilation / shared, axis.stride / shared};
}

int64_t pairs_inside(const ConvolutionAxis& axis) {
  int64_t pairs = 0;
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    const int64_t before = axis.pad_begin - tap * axis.dilation;  // padding before the tap
    const auto outputs_before = [&](int64_t position) {
      return std::clamp<int64_t>(ceil_div(std::max<int64_t>(position, 0), axis.stride), 0,
                                 axis.output);
    };
    pairs += outputs_before(before + axis.input) - outputs_before(before);
  }
  return pairs;
}

double fraction_inside(const ConvolutionAxis& axis) {
  return static_cast<double>(pairs_inside(axis)) / static_cast<double>(axis.output * axis.kernel);
}

std::optional<int64_t> outer_position(const ConvolutionGeometry& geometry, int64_t output,
                                      int64_t slice) {
  const std::vector<ConvolutionAxis>& axes = geometry.axes;
  int64_t position = 0;
  int64_t unit = 1;
  for (size_t i = axes.size() > 2 ? axes.size() - 2 : 0; i-- > 0;) {
    const ConvolutionAxis& axis = axes[i];
    const int64_t at =
        output % axis.output * axis.stride - axis.pad_begin + slice % axis.kernel * axis.dilation;
    if (at < 0 || at >= axis.input) return std::nullopt;
    position += at * unit;
    unit *= axis.input;
    output /= axis.output;
    slice /= axis.kernel;
  }
  return position;
}

bool has_outer_padding(const ConvolutionGeometry& geometry) {
  for (size_t i = 0; i + 2 < geometry.axes.size(); ++i) {
    const ConvolutionAxis& axis = geometry.axes[i];
    const int64_t last =
        (axis.output - 1) * axis.stride + (axis.kernel - 1) * axis.dilation - axis.pad_begin;
    if (axis.pad_begin > 0 || last >= axis.input) return true;
  }
  return false;
}

bool is_one_pass(const ConvolutionGeometry& geometry) {
  for (size_t i = 0; i + 2 < geometry.axes.size(); ++i) {
    if (geometry.axes[i].kernel > 1) return false;
  }
  return !has_outer_padding(geometry);
}

bool has_near_positions(const ConvolutionAxis& rows, const ConvolutionAxis& columns,
                        int64_t pixel_bytes) {
  constexpr int64_t max_bytes = int64_t{1} << 48;
  const int64_t row_positions = positions_of(rows);
  const int64_t column_positions = positions_of(columns);
  const int64_t row_bytes = saturated_product(column_positions, pixel_bytes);
  return std::max(row_positions, column_positions) <= max_plane_positions &&
         saturated_product(row_positions, row_bytes) < max_bytes;
}

}  // namespace castor::jit
