// SPDX-License-Identifier: Apache-2.0
#include "ir/shape/pooling.hpp"

#include <fmt/format.h>

#include "ir/shape/byte_operands.hpp"
#include "ir/shape/convolution_axis.hpp"

namespace castor {

namespace {

Error mistake(const Operation& operation, const std::string& detail) {
  return detail::window_mistake(operation.op, detail);
}

Status check_rank(const Operation& operation, int rank) {
  if (rank < 3) {
    return mistake(
        operation,
        fmt::format("x has rank {}, expected 3 or more: batch, channels and spatial axes", rank));
  }
  if (rank <= 2 + max_spatial_axes) return {};
  return Error{ErrorCode::unsupported,
               fmt::format("{}: x has {} spatial axes, expected {} at most", name_of(operation.op),
                           rank - 2, max_spatial_axes)};
}

Result<ConvolutionOptions> checked_options(const Operation& operation, int rank) {
  if (Status status = check_rank(operation, rank); !status) return status.error();
  Result<ConvolutionOptions> options = convolution_options(operation, rank - 2);
  if (options && options->kernel_shape.empty()) {
    return mistake(operation, "found no kernel_shape, expected the extents of the windows");
  }
  return options;
}

Result<PoolingGeometry> geometry_of(const Operation& operation, const ConvolutionOptions& options,
                                    const Dims& x) {
  PoolingGeometry geometry{.first_axis = first_spatial_axis(options.layout)};
  for (int i = 0; i < x.rank() - 2; ++i) {
    const Result<ConvolutionAxis> axis =
        detail::axis_of(operation.op, options, i, x[geometry.first_axis + i], detail::unknown);
    if (!axis) return axis.error();
    geometry.axes.push_back(*axis);
  }
  return geometry;
}

}  // namespace

Result<PoolingGeometry> pooling_geometry(const Operation& operation, const Dims& x) {
  const Result<ConvolutionOptions> options = checked_options(operation, x.rank());
  if (!options) return options.error();
  return geometry_of(operation, *options, x);
}

PoolingTaps pooling_taps(const Operation& operation, int rank) {
  const ConvolutionOptions options = checked_options(operation, rank).value();
  PoolingTaps taps{.steps = Dims::filled(rank, 1)};
  taps.begins = {Dims::filled(rank, 0)};
  for (int i = 0; i < rank - 2; ++i) {
    const auto at = static_cast<size_t>(i);
    const int axis = first_spatial_axis(options.layout) + i;
    taps.steps[axis] = options.strides[at];
    std::vector<Dims> longer;
    for (Dims begin : taps.begins) {
      for (int64_t k = 0; k < options.kernel_shape[at]; ++k) {
        begin[axis] = k * options.dilations[at];
        longer.push_back(begin);
      }
    }
    taps.begins = std::move(longer);
  }
  return taps;
}

Result<Dims> pooled_extents(const Operation& operation, const Dims& x) {
  const Result<PoolingGeometry> geometry = pooling_geometry(operation, x);
  if (!geometry) return geometry.error();
  Dims extents = x;
  for (size_t i = 0; i < geometry->axes.size(); ++i) {
    extents[geometry->axis_at(i)] = geometry->axes[i].output;
  }
  return extents;
}

Result<TensorType> pooling_type(const Operation& operation, const TensorType& x) {
  const Dims extents = detail::known_extents(x.shape);
  const Result<ConvolutionOptions> options = checked_options(operation, extents.rank());
  if (!options) return options.error();
  const Result<PoolingGeometry> geometry = geometry_of(operation, *options, extents);
  if (!geometry) return geometry.error();
  TensorType result = x;
  for (size_t i = 0; i < geometry->axes.size(); ++i) {
    const ConvolutionAxis& axis = geometry->axes[i];
    Dim& dim = result.shape[static_cast<size_t>(geometry->axis_at(i))];
    if (detail::is_known(axis.output)) {
      dim = Dim(axis.output);
    } else if (!detail::keeps_extent(*options, axis)) {
      dim = Dim::any();
    }
  }
  return result;
}

}  // namespace castor
