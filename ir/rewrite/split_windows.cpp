// SPDX-License-Identifier: Apache-2.0
#include "ir/rewrite/split_windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/rewrite/rebuild.hpp"
#include "ir/shape/byte_operands.hpp"
#include "ir/shape/pooling.hpp"

namespace castor {

namespace {

// What poolings cost for each element of the result, in elements that are read with their
// neighbours.
constexpr double strided_read = 4;  // an element whose neighbours are not read
constexpr double pass = 1.5;        // a result is stored and read again

/// One pooling, with its options in full length.
struct Windows {
  ConvolutionOptions options;

  size_t axes() const { return options.strides.size(); }
  /// Whether the axis is pooled, or part of its elements are left out.
  bool is_pooled(size_t axis) const {
    return options.kernel_shape[axis] > 1 || options.strides[axis] > 1 || is_padded(axis);
  }
  bool is_padded(size_t axis) const {
    return options.pads[axis] > 0 || options.pads[axis + axes()] > 0;
  }
  size_t pooled_axes() const {
    size_t count = 0;
    for (size_t axis = 0; axis < axes(); ++axis) count += is_pooled(axis) ? 1 : 0;
    return count;
  }
  size_t last_pooled() const {
    size_t axis = axes() - 1;
    while (axis > 0 && !is_pooled(axis)) --axis;
    return axis;
  }
  double taps() const {
    double count = 1;
    for (const int64_t extent : options.kernel_shape) count *= static_cast<double>(extent);
    return count;
  }
  /// The cost of one kernel position: adjacent results read adjacent elements, or others.
  double tap_cost() const {
    const bool is_strided = options.layout == ConvolutionLayout::nchw && options.strides.back() > 1;
    return is_strided ? strided_read : 1;
  }

  /// Windows along the axis alone, or along all others.
  Windows restricted(size_t axis, bool to_others) const {
    Windows part = *this;
    for (size_t i = 0; i < axes(); ++i) {
      if ((i == axis) != to_others) continue;
      part.options.kernel_shape[i] = part.options.strides[i] = part.options.dilations[i] = 1;
      part.options.pads[i] = part.options.pads[i + axes()] = 0;
    }
    return part;
  }
};

/// Two poolings, one after the other, instead of one.
struct Pair {
  Windows first;
  Windows second;
  double cost = INFINITY;  ///< both, for each result of the second
};

/// The others, then the last axis.
Pair by_axes(const Windows& windows) {
  const size_t last = windows.last_pooled();
  Pair pair{.first = windows.restricted(last, true), .second = windows.restricted(last, false)};
  const auto passed = static_cast<double>(windows.options.strides[last]);
  pair.cost = (pair.first.taps() * pair.first.tap_cost() + pass) * passed +
              pair.second.taps() * pair.second.tap_cost();
  return pair;
}

/// Windows of half the extent along the only axis, then two of these, as far apart as the whole
/// windows want it. The first has the largest stride that meets both.
Pair by_halves(const Windows& windows, size_t axis) {
  const ConvolutionOptions& whole = windows.options;
  const int64_t kernel = whole.kernel_shape[axis];
  const int64_t half = kernel - kernel / 2;
  const int64_t apart = (kernel - half) * whole.dilations[axis];
  const int64_t stride = std::gcd(whole.strides[axis], apart);
  Pair pair{windows, windows.restricted(axis, true)};
  pair.first.options.kernel_shape[axis] = half;
  pair.first.options.strides[axis] = stride;
  pair.second = windows.restricted(axis, false);
  ConvolutionOptions& second = pair.second.options;
  for (size_t i = 0; i < windows.axes(); ++i) {
    second.kernel_shape[i] = i == axis ? 2 : 1;
    second.dilations[i] = i == axis ? apart / stride : 1;
    second.strides[i] = i == axis ? whole.strides[axis] / stride : 1;
    second.pads[i] = second.pads[i + windows.axes()] = 0;
  }
  second.auto_pad = AutoPad::notset;
  pair.cost = (pair.first.taps() * pair.first.tap_cost() + pass) *
                  static_cast<double>(second.strides[axis]) +
              2 * pair.second.tap_cost();
  return pair;
}

bool is_same(AutoPad auto_pad) {
  return auto_pad == AutoPad::same_upper || auto_pad == AutoPad::same_lower;
}

/// Whether paddings are numbers.
bool has_pads(const Windows& windows) { return !is_same(windows.options.auto_pad); }

/// The options with paddings as numbers where these are known.
Windows windows_of(const Operation& operation, const Shape& x) {
  const auto rank = static_cast<int>(x.size());
  Windows windows{convolution_options(operation, rank - 2).value()};
  if (windows.options.auto_pad == AutoPad::valid) windows.options.auto_pad = AutoPad::notset;
  if (has_pads(windows)) return windows;
  Dims extents = detail::known_extents(x);
  ConvolutionOptions& options = windows.options;
  for (size_t i = 0; i < windows.axes(); ++i) {  // with a stride of 1, extents say nothing
    int64_t& extent = extents[options.layout == ConvolutionLayout::nchw ? static_cast<int>(i) + 2
                                                                        : static_cast<int>(i) + 1];
    if (extent == Dim::unknown_extent && options.strides[i] == 1) extent = 1;
    if (extent == Dim::unknown_extent) return windows;
  }
  const PoolingGeometry geometry = pooling_geometry(operation, extents).value();
  options.auto_pad = AutoPad::notset;
  for (size_t i = 0; i < windows.axes(); ++i) {
    options.pads[i] = geometry.axes[i].pad_begin;
    options.pads[i + windows.axes()] = geometry.axes[i].pad_end;
  }
  return windows;
}

/// The better way to split, if one costs less than the windows as they are, or these are too large.
std::optional<Pair> split_of(const Windows& windows) {
  Pair pair;
  if (windows.pooled_axes() > 1) {
    pair = by_axes(windows);
  } else if (const size_t axis = windows.last_pooled();
             windows.options.kernel_shape[axis] > 2 && has_pads(windows)) {
    pair = by_halves(windows, axis);
  }
  const bool must = windows.taps() > static_cast<double>(max_pooling_taps);
  const bool pays = pair.cost < windows.taps() * windows.tap_cost();
  return pair.cost < INFINITY && (must || pays) ? std::optional(std::move(pair)) : std::nullopt;
}

bool is_affected(const Function& function, const Operation& operation) {
  return operation.op == OpKind::max_pool &&
         split_of(windows_of(operation, function.type_of(operation.operands[0]).shape));
}

ValueId append_split(FunctionBuilder& builder, ValueId x, const Windows& windows) {
  const std::optional<Pair> pair = split_of(windows);
  if (!pair) {
    ConvolutionOptions options = windows.options;
    if (!has_pads(windows)) options.pads.clear();  // auto_pad says them
    return builder.max_pool(x, options);
  }
  return append_split(builder, append_split(builder, x, pair->first), pair->second);
}

Result<FunctionPtr> split(const Function& function) {
  FunctionBuilder builder(function.name);
  detail::CopiedIds ids = detail::append_parameters(builder, function);
  for (const Operation& operation : function.operations) {
    if (!is_affected(function, operation)) {
      detail::append_copy(builder, function, operation, ids);
      continue;
    }
    const ValueId x = operation.operands[0];
    const ValueId y = operation.results[0];
    ids[y] = append_split(builder, ids[x], windows_of(operation, function.type_of(x).shape));
    builder.name(ids[y], function.values[y].name);
  }
  return detail::finish_copy(builder, function, ids);
}

}  // namespace

FunctionPtr split_windows(const FunctionPtr& function) {
  const bool changes = std::ranges::any_of(function->operations, [&](const Operation& operation) {
    return is_affected(*function, operation);
  });
  if (!changes) return function;
  const Result<FunctionPtr> done = split(*function);
  return done ? *done : function;  // the rules of the IR hold for what was verified before
}

std::string reason_windows_not_split(const Function& function) {
  for (const Operation& operation : function.operations) {
    if (operation.op != OpKind::max_pool) continue;
    const Shape& x = function.type_of(operation.operands[0]).shape;
    if (windows_of(operation, x).taps() <= static_cast<double>(max_pooling_taps)) continue;
    return fmt::format(
        "%{} = max_pool: windows of more than {} elements need paddings that are numbers, found "
        "auto_pad with strides and the extents {}",
        function.values[operation.results[0]].name, max_pooling_taps, to_string(x));
  }
  return {};
}

}  // namespace castor
