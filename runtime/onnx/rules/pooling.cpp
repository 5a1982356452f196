// SPDX-License-Identifier: Apache-2.0
// MaxPool.
#include <algorithm>

#include "ir/support/integer_math.hpp"
#include "runtime/onnx/rules/rules.hpp"

namespace castor::onnx {

namespace {

using Numbers = std::vector<int64_t>;

/// One spatial axis of a pool.
struct Axis {
  Dim input;
  int64_t window;  ///< input positions from the first to the last one that an output takes
  int64_t stride;
  int64_t pad_begin;
  int64_t pad_end;
};

/// The padding at the end with which rounding down gives the outputs of ceil_mode = 1: those of
/// rounding up, less one where the last window would begin in the padding at the end. Nothing where
/// that depends on the input's extent, which is unknown.
std::optional<int64_t> rounded_up_padding(const Axis& axis) {
  if (!axis.input.is_fixed()) {
    const bool always_begins_before = axis.stride + axis.pad_end <= axis.window;
    return always_begins_before ? std::optional(axis.pad_end + axis.stride - 1) : std::nullopt;
  }
  const int64_t before_end = axis.pad_begin + axis.input.extent;
  const int64_t room = before_end + axis.pad_end - axis.window;
  int64_t last = floor_div(room + axis.stride - 1, axis.stride);
  if (last * axis.stride >= before_end) --last;
  return std::max<int64_t>(last * axis.stride + axis.window - before_end, 0);
}

/// Whether products and sums of the numbers fit.
bool are_sensible(const Numbers& numbers, int64_t least) {
  constexpr int64_t largest = 1 << 30;
  return std::ranges::all_of(numbers,
                             [&](int64_t number) { return least <= number && number <= largest; });
}

bool are_sensible(const ConvolutionOptions& options, const Shape& x) {
  Numbers extents;
  for (const Dim& dim : x) extents.push_back(dim.is_fixed() ? dim.extent : 0);
  return are_sensible(options.kernel_shape, 1) && are_sensible(options.strides, 1) &&
         are_sensible(options.dilations, 1) && are_sensible(options.pads, 0) &&
         are_sensible(extents, 0);
}

/// Writes defaults; whether all lists then have the lengths that they should have.
bool fill(ConvolutionOptions& options, size_t axes) {
  if (options.strides.empty()) options.strides.assign(axes, 1);
  if (options.dilations.empty()) options.dilations.assign(axes, 1);
  if (options.pads.empty()) options.pads.assign(2 * axes, 0);
  return options.kernel_shape.size() == axes && options.strides.size() == axes &&
         options.dilations.size() == axes && options.pads.size() == 2 * axes;
}

/// Says ceil_mode = 1 with paddings. Lists of wrong lengths are left for the builder to refuse.
///
/// Source: ONNX, MaxPool-22. Its formula for auto_pad = VALID rounds down; its shape inference and
/// ONNX Runtime round up as they do without padding, and so does this.
void round_up(ConvolutionOptions& options, const Shape& x, Translation& into) {
  if (is_same(options.auto_pad) || x.size() < 2) return;
  const size_t axes = x.size() - 2;
  options.auto_pad = AutoPad::notset;
  if (!fill(options, axes)) return;
  if (!are_sensible(options, x)) {
    return into.refuse("ceil_mode is 1 beside a number that is negative or above 2^30");
  }
  for (size_t i = 0; i < axes; ++i) {
    int64_t& pad_end = options.pads[axes + i];
    const int64_t window = (options.kernel_shape[i] - 1) * options.dilations[i] + 1;
    const auto padding =
        rounded_up_padding({x[2 + i], window, options.strides[i], options.pads[i], pad_end});
    if (!padding) {
      return into.refuse(
          "ceil_mode is 1, and the number of windows depends on an extent that is unknown");
    }
    pad_end = *padding;
  }
}

}  // namespace

Outputs max_pool(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  // What storage_order says concerns the indices alone.
  if (into.is_read(node, 1)) into.refuse("its indices are read, castor gives the maxima alone");
  ConvolutionOptions options = convolution_options_of(node, into);
  if (node.integer("ceil_mode", 0) != 0) round_up(options, into.shape(x), into);
  if (into.refusal()) return {};
  return {into.builder().max_pool(x, options)};
}

}  // namespace castor::onnx
