// SPDX-License-Identifier: Apache-2.0
// What a convolution is planned from, and its axes as every planner takes them: rows and columns,
// and all outer axes together.
#pragma once

#include <optional>

#include "ir/shape/convolution.hpp"
#include "jit/conv/dot_product.hpp"

namespace castor::jit {

/// A convolution as every planner and every cost sees it. It has output elements and taps:
/// channels, output channels, batch and output extents are not 0, and check_filter passes.
struct ConvolutionProblem {
  ConvolutionGeometry geometry;
  bool x_is_signed = false;
  bool w_is_signed = true;
  bool has_weight_zero_points = false;  ///< given as an operand, whatever its values
  bool has_constant_weights = true;     ///< else each call packs them
};

/// Whether kernels with that engine subtract window sums times zero points: i16 pairs are less
/// them, and unsigned weights have one of 128 after a sign flip.
inline bool subtracts_window_sums(ProductEngine engine, const ConvolutionProblem& problem) {
  const bool is_shifted = takes_u8_by_i8(engine) && !problem.w_is_signed;
  return multiplies_bytes(engine) && (problem.has_weight_zero_points || is_shifted);
}

/// The geometry with the images of a batch as one row of pixels, where nothing but the batch axis
/// tells them apart: pointwise convolutions pixel by pixel. Else as it is.
ConvolutionGeometry with_joined_images(const ConvolutionGeometry& geometry);

struct PlaneAxes {
  ConvolutionAxis rows;       ///< the last but one spatial axis; one row where there is none
  ConvolutionAxis columns;    ///< the last
  int64_t slices = 1;         ///< kernel positions along all outer spatial axes
  int64_t outer_outputs = 1;  ///< output positions along them
};

/// The axes of a geometry that has output elements. A stride between at most one output and a
/// dilation of one tap make no difference and are 1, so that planners meet no stride beyond the
/// padded input.
PlaneAxes plane_axes(const ConvolutionGeometry& geometry);

/// Input positions that adjacent outputs take along an axis, from the first to the last one.
inline int64_t input_extent(int64_t outputs, const ConvolutionAxis& axis) {
  return (outputs - 1) * axis.stride + axis.window();
}

/// Products that are summed for one element of the result.
inline int64_t products_of_output(const ConvolutionGeometry& geometry) {
  int64_t products = geometry.group_channels();
  for (const ConvolutionAxis& axis : geometry.axes) products *= axis.kernel;
  return products;
}

/// Whether each output takes the input at its own position, and all of them are taken.
bool is_pointwise(const ConvolutionAxis& axis);

/// An axis as the phases of its outputs see it: a filter dilated by d, at a stride of s, takes
/// positions d apart in outputs that are d / gcd(d, s) apart.
struct AxisPhases {
  int64_t step = 1;    ///< input positions from one that the filter takes to the next
  int64_t count = 1;   ///< of outputs
  int64_t stride = 1;  ///< in steps
};
AxisPhases phases_of(const ConvolutionAxis& axis);

/// Pairs of an output and a tap along an axis at which there is input, not padding.
int64_t pairs_inside(const ConvolutionAxis& axis);
/// These pairs as a fraction of all.
double fraction_inside(const ConvolutionAxis& axis);

/// The input position along the outer axes, row-major, that an output position there and a slice of
/// the filter take; nothing in the padding.
std::optional<int64_t> outer_position(const ConvolutionGeometry& geometry, int64_t output,
                                      int64_t slice);

/// Whether some output takes padding along the outer axes.
bool has_outer_padding(const ConvolutionGeometry& geometry);

/// Whether along the outer axes each output takes one input position, inside the image.
bool is_one_pass(const ConvolutionGeometry& geometry);

/// Gives a plan the axes of its geometry.
template <class Plan>
void set_plane_axes(Plan& plan) {
  static_cast<PlaneAxes&>(plan) = plane_axes(plan.geometry);
}

/// The largest number of positions, paddings and outputs for which planners that keep the distances
/// of a plane's elements as ordinary numbers can be asked.
inline constexpr int64_t max_plane_positions = int64_t{1} << 30;

/// Whether both axes have at most `max_plane_positions` positions, padding included, and no two
/// elements of a padded plane with `pixel_bytes` bytes for each pixel are 2^48 or more bytes apart.
bool has_near_positions(const ConvolutionAxis& rows, const ConvolutionAxis& columns,
                        int64_t pixel_bytes);

}  // namespace castor::jit
