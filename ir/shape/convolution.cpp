// SPDX-License-Identifier: Apache-2.0
// The geometry of convolutions.
#include "ir/shape/convolution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/shape/byte_operands.hpp"
#include "ir/shape/convolution_axis.hpp"

namespace castor {

using detail::differ;
using detail::is_known;

namespace {

Error mistake(const std::string& detail) {
  return detail::window_mistake(OpKind::conv_integer, detail);
}

constexpr std::array<std::string_view, 4> operand_names = {"x", "w", "x_zero_point",
                                                           "w_zero_point"};

// ---- Ranks, channels and zero points.

Status check_ranks(const Dims& x, const Dims& w) {
  if (x.rank() < 3) {
    return mistake(fmt::format(
        "x has rank {}, expected 3 or more: batch, channels and spatial axes", x.rank()));
  }
  if (x.rank() > 2 + max_spatial_axes) {
    return Error{ErrorCode::unsupported,
                 fmt::format("conv_integer: x has {} spatial axes, expected {} at most",
                             x.rank() - 2, max_spatial_axes)};
  }
  if (w.rank() == x.rank()) return {};
  return mistake(
      fmt::format("w has rank {}, expected {}: as many spatial axes as x has", w.rank(), x.rank()));
}

int channel_axis(ConvolutionLayout layout, int rank) {
  return layout == ConvolutionLayout::nchw ? 1 : rank - 1;
}

Status check_channels(const ConvolutionGeometry& geometry, int64_t channels_of_w) {
  const int64_t group = geometry.groups;
  const auto divides = [&](int64_t count) { return !is_known(count) || count % group == 0; };
  if (!divides(geometry.channels)) {
    return mistake(fmt::format("group = {}, expected a divisor of x's channels, which are {}",
                               group, geometry.channels));
  }
  if (!divides(geometry.out_channels)) {
    return mistake(fmt::format("group = {}, expected a divisor of w's axis 0, which is {}", group,
                               geometry.out_channels));
  }
  if (!is_known(geometry.channels) || !differ(channels_of_w, geometry.group_channels())) return {};
  return mistake(fmt::format("x has {} channels, expected {} (w's axis 1) times {} (group)",
                             geometry.channels, channels_of_w, group));
}

/// A scalar, one entry, or `per_channel` entries where that is not `unknown`.
Status check_zero_point(std::string_view name, const Dims& zero_point, bool per_channel,
                        int64_t out_channels) {
  if (zero_point.rank() == 0) return {};
  if (zero_point.rank() > 1) {
    return mistake(fmt::format("{} has rank {}, expected 0 or 1", name, zero_point.rank()));
  }
  const int64_t found = zero_point[0];
  if (!differ(found, 1)) return {};
  if (!per_channel) return mistake(fmt::format("{} has {} entries, expected 1", name, found));
  if (!differ(found, out_channels)) return {};
  return mistake(
      fmt::format("{} has {} entries, expected 1, or {} as w's axis 0", name, found, out_channels));
}

// ---- Everything together.

/// Extents of operands, as far as they are known; null: absent.
using Operands = std::array<const Dims*, 4>;

Result<ConvolutionGeometry> geometry_of(const ConvolutionOptions& options,
                                        const Operands& operands) {
  const Dims& x = *operands[0];
  const Dims& w = *operands[1];
  ConvolutionGeometry geometry{.layout = options.layout,
                               .batch = x[0],
                               .channels = x[channel_axis(options.layout, x.rank())],
                               .out_channels = w[0],
                               .groups = options.group};
  Status status = check_channels(geometry, w[1]);
  for (size_t i = 2; i < operands.size() && status; ++i) {
    if (!operands[i]) continue;
    status = check_zero_point(operand_names[i], *operands[i], i == 3, geometry.out_channels);
  }
  if (!status) return status.error();
  for (int i = 0; i < x.rank() - 2; ++i) {
    const Result<ConvolutionAxis> axis = detail::axis_of(
        OpKind::conv_integer, options, i, x[first_spatial_axis(options.layout) + i], w[2 + i]);
    if (!axis) return axis.error();
    geometry.axes.push_back(*axis);
  }
  return geometry;
}

Result<ConvolutionOptions> checked_options(const Operation& operation, const Operands& operands) {
  const Dims& x = *operands[0];
  if (Status status = check_ranks(x, *operands[1]); !status) return status.error();
  return convolution_options(operation, x.rank() - 2);
}

// ---- Types.

Shape result_shape(const ConvolutionOptions& options, const ConvolutionGeometry& geometry,
                   const Shape& x, const Shape& w) {
  Shape shape = {x[0]};
  auto spatial = x.begin() + first_spatial_axis(options.layout);
  for (const ConvolutionAxis& axis : geometry.axes) {
    const Dim& input = *spatial++;
    const bool is_inputs = !is_known(axis.output) && detail::keeps_extent(options, axis);
    shape.push_back(is_inputs ? input : is_known(axis.output) ? Dim(axis.output) : Dim::any());
  }
  const int at = channel_axis(options.layout, static_cast<int>(x.size()));
  shape.insert(shape.begin() + at, w[0]);
  return shape;
}

}  // namespace

Dims ConvolutionGeometry::output_extents() const {
  Dims extents{batch};
  if (layout == ConvolutionLayout::nchw) extents.push_back(out_channels);
  for (const ConvolutionAxis& axis : axes) extents.push_back(axis.output);
  if (layout == ConvolutionLayout::nhwc) extents.push_back(out_channels);
  return extents;
}

bool has_convolutions(const Function& function) {
  return std::ranges::any_of(function.operations, [](const Operation& operation) {
    return info(operation.op).family == OpFamily::convolution;
  });
}

Result<ConvolutionGeometry> convolution_geometry(const Operation& operation, const Dims& x,
                                                 const Dims& w, const Dims* x_zero_point,
                                                 const Dims* w_zero_point) {
  const Operands operands = {&x, &w, x_zero_point, w_zero_point};
  const Result<ConvolutionOptions> options = checked_options(operation, operands);
  if (!options) return options.error();
  return geometry_of(*options, operands);
}

Result<TensorType> convolution_type(const Operation& operation,
                                    std::span<const TensorType* const> operands) {
  if (Status status = detail::check_byte_operands(operation.op, operand_names, operands); !status)
    return status.error();
  std::array<Dims, 4> extents;
  Operands known{};
  for (size_t i = 0; i < known.size(); ++i) {
    if (!operands[i]) continue;
    extents[i] = detail::known_extents(operands[i]->shape);
    known[i] = &extents[i];
  }
  const Result<ConvolutionOptions> options = checked_options(operation, known);
  if (!options) return options.error();
  const Result<ConvolutionGeometry> geometry = geometry_of(*options, known);
  if (!geometry) return geometry.error();
  return TensorType{ElementType::i32,
                    result_shape(*options, *geometry, operands[0]->shape, operands[1]->shape)};
}

}  // namespace castor
