// SPDX-License-Identifier: Apache-2.0
// The axes of a convolution as every planner takes them: rows and columns, and all outer axes
// together.
#pragma once

#include "ir/shape/convolution.hpp"

namespace castor::jit {

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

/// Gives a plan the axes of its geometry.
template <class Plan>
void set_plane_axes(Plan& plan) {
  const PlaneAxes axes = plane_axes(plan.geometry);
  plan.rows = axes.rows;
  plan.columns = axes.columns;
  plan.slices = axes.slices;
  plan.outer_outputs = axes.outer_outputs;
}

/// The largest number of positions, paddings and outputs for which planners that keep the distances
/// of a plane's elements as ordinary numbers can be asked.
inline constexpr int64_t max_plane_positions = int64_t{1} << 30;

/// Whether both axes have at most `max_plane_positions` positions, padding included, and no two
/// elements of a padded plane with `pixel_bytes` bytes for each pixel are 2^48 or more bytes apart.
bool has_near_positions(const ConvolutionAxis& rows, const ConvolutionAxis& columns,
                        int64_t pixel_bytes);

}  // namespace castor::jit
