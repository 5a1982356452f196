// SPDX-License-Identifier: Apache-2.0
#include "ir/rewrite/split_windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "ir/rewrite/rebuild.hpp"
#include "ir/shape/byte_operands.hpp"
#include "ir/shape/convolution_axis.hpp"
#include "ir/shape/pooling.hpp"
#include "ir/support/integer_math.hpp"

namespace castor {

namespace {

// What poolings cost for each element of the result, in elements that are read with their
// neighbours.
constexpr double strided_read = 8;  // rows are picked apart one by one
constexpr double strided_pick = 2;  // rows are one long row: no window overlaps another, or padding
constexpr double pass = 1.5;        // a result is stored and read again

/// One pooling, with its options in full length.
struct Windows {
  ConvolutionOptions options;
  std::vector<int64_t> inputs;  ///< extents of the spatial axes; detail::unknown of others

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
  /// The cost without splitting: adjacent results read adjacent elements, or others.
  double cost() const {
    const int64_t stride = options.strides.back();
    if (options.layout == ConvolutionLayout::nhwc || stride == 1) return taps();
    const bool is_one_row =
        pooled_axes() == 1 && options.kernel_shape.back() <= stride && !is_padded(axes() - 1);
    return taps() * (is_one_row || taps() == 1 ? strided_pick : strided_read);
  }

  Result<ConvolutionAxis> along(size_t axis, int64_t input) const {
    return detail::axis_of(OpKind::max_pool, options, static_cast<int>(axis), input,
                           detail::unknown);
  }
  /// The least extent of the input that is valid.
  int64_t min_input(size_t axis) const {
    if (detail::is_known(inputs[axis]) || along(axis, 0)) return std::max<int64_t>(inputs[axis], 0);
    const ConvolutionAxis unbound = *along(axis, detail::unknown);
    const int64_t padding = wrapped_sum(unbound.pad_begin, unbound.pad_end);
    return unbound.window() - unbound.stride - padding;
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
};

/// The others, then the last axis.
Pair by_axes(const Windows& windows) {
  const size_t last = windows.last_pooled();
  return {.first = windows.restricted(last, true), .second = windows.restricted(last, false)};
}

/// The extent of the result, where it is known and there is one.
int64_t output_of(const Windows& windows, size_t axis) {
  const Result<ConvolutionAxis> along = windows.along(axis, windows.inputs[axis]);
  return along ? along->output : detail::unknown;
}

/// All windows along the only axis, then those that the stride leaves.
Pair by_stride(const Windows& windows, size_t axis) {
  Pair pair{windows, windows.restricted(axis, false)};
  pair.first.options.strides[axis] = 1;
  pair.second.inputs[axis] = output_of(pair.first, axis);
  ConvolutionOptions& second = pair.second.options;
  second.kernel_shape[axis] = second.dilations[axis] = 1;
  second.pads[axis] = second.pads[axis + windows.axes()] = 0;
  return pair;
}

/// Whether paddings are numbers.
bool has_pads(const Windows& windows) { return !is_same(windows.options.auto_pad); }

/// Windows of half the extent along the only axis, then two of these, as far apart as the whole
/// windows want it. The first has the largest stride that meets both.
Pair by_halves(const Windows& windows, size_t axis) {
  const ConvolutionOptions& whole = windows.options;
  const int64_t kernel = whole.kernel_shape[axis];
  const int64_t half = kernel - kernel / 2;
  const int64_t apart = (kernel - half) * whole.dilations[axis];
  const int64_t stride = std::gcd(whole.strides[axis], apart);
  Pair pair{windows, windows.restricted(axis, false)};
  pair.first.options.kernel_shape[axis] = half;
  pair.first.options.strides[axis] = stride;
  pair.second.inputs[axis] = output_of(pair.first, axis);
  ConvolutionOptions& second = pair.second.options;
  second.kernel_shape[axis] = 2;
  second.dilations[axis] = apart / stride;
  second.strides[axis] = whole.strides[axis] / stride;
  second.pads[axis] = second.pads[axis + windows.axes()] = 0;
  return pair;
}

/// The options with paddings as numbers where these are known.
Windows windows_of(const Operation& operation, const Shape& x) {
  const auto rank = static_cast<int>(x.size());
  Windows windows{convolution_options(operation, rank - 2).value(), {}};
  if (windows.options.auto_pad == AutoPad::valid) windows.options.auto_pad = AutoPad::notset;
  Dims extents = detail::known_extents(x);
  ConvolutionOptions& options = windows.options;
  const int first = first_spatial_axis(options.layout);
  windows.inputs.assign(extents.begin() + first, extents.begin() + first + rank - 2);
  if (has_pads(windows)) return windows;
  for (size_t i = 0; i < windows.axes(); ++i) {  // with a stride of 1, extents say nothing
    int64_t& extent = extents[first + static_cast<int>(i)];
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

/// Whether the pair takes all inputs that the windows take: a kernel may exceed the input by its
/// stride, which is less for the first of the pair.
bool is_as_general(const Pair& pair, const Windows& windows, size_t axis) {
  return pair.first.along(axis, windows.min_input(axis)).ok();
}

/// Ways to split windows.
std::vector<Pair> pairs_of(const Windows& windows) {
  if (windows.pooled_axes() > 1) return {by_axes(windows)};
  const size_t axis = windows.last_pooled();
  const ConvolutionOptions& options = windows.options;
  std::vector<Pair> pairs;
  if (!has_pads(windows)) return pairs;
  if (options.kernel_shape[axis] > 1 && options.strides[axis] > 1) {
    pairs.push_back(by_stride(windows, axis));
  }
  if (options.kernel_shape[axis] > 2) pairs.push_back(by_halves(windows, axis));
  std::erase_if(pairs, [&](const Pair& pair) { return !is_as_general(pair, windows, axis); });
  return pairs;
}

/// The least cost of windows, and how they are split for it, if they are.
struct Best {
  double cost;
  std::optional<Pair> pair{};
};

/// Windows that are too large are split in any case, if there is a way.
Best best_of(const Windows& windows) {
  const bool must = windows.taps() > static_cast<double>(max_pooling_taps);
  Best best{must ? INFINITY : windows.cost()};
  for (Pair& pair : pairs_of(windows)) {
    double results = 1;  // each result of the second stands for several of the first
    for (const int64_t stride : pair.second.options.strides) {
      results *= static_cast<double>(stride);
    }
    const double cost = (best_of(pair.first).cost + pass) * results + best_of(pair.second).cost;
    if (cost < best.cost) best = {cost, std::move(pair)};
  }
  return best.pair ? best : Best{windows.cost()};
}

bool is_affected(const Function& function, const Operation& operation) {
  if (operation.op != OpKind::max_pool) return false;
  const Shape& x = function.type_of(operation.operands[0]).shape;
  return best_of(windows_of(operation, x)).pair.has_value();
}

ValueId append_split(FunctionBuilder& builder, ValueId x, const Windows& windows) {
  const std::optional<Pair> pair = best_of(windows).pair;
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
    const Windows windows = windows_of(operation, x);
    if (windows.taps() <= static_cast<double>(max_pooling_taps)) continue;
    return fmt::format(
        "%{} = max_pool: windows of more than {} elements need {}, found {} and the extents {}",
        function.values[operation.results[0]].name, max_pooling_taps,
        has_pads(windows) ? "strides of at most half the kernel" : "paddings that are numbers",
        has_pads(windows) ? fmt::format("strides = {}", to_string(Dims(windows.options.strides)))
                          : "auto_pad with strides",
        to_string(x));
  }
  return {};
}

}  // namespace castor
