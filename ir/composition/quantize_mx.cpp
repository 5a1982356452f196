// SPDX-License-Identifier: Apache-2.0
// Floats as microscaling formats: a scale for each block from its largest magnitude, then elements.
// Sources: OCP Microscaling Formats 1.0, sections 5 and 6; NVFP4 as NVIDIA describes it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/composition/definition.hpp"
#include "ir/composition/mx_formats.hpp"
#include "ir/composition/steps.hpp"
#include "ir/shape/convolution.hpp"
#include "ir/support/integer_math.hpp"

namespace castor {

namespace {

constexpr size_t tensor_scale = 1;
constexpr double largest_f4e2m1 = 6;
constexpr double largest_f8e4m3 = 448;

/// A format's largest number: its exponent, and how many bits its significands have after the
/// first.
struct ElementRange {
  double largest;
  int exponent;
  int mantissa_bits;
};

ElementRange range_of(const MxFormat& format) {
  switch (format.element) {
    case ElementType::f8e4m3: return {largest_f8e4m3, 8, 3};
    case ElementType::f8e5m2: return {57344, 15, 2};
    case ElementType::f6e2m3: return {7.5, 2, 3};
    case ElementType::f6e3m2: return {28, 4, 2};
    case ElementType::f4e2m1: return {largest_f4e2m1, 2, 1};
    default: return {127.0 / 64, 0, 6};  // MXINT8
  }
}

/// What all steps share.
struct Quantizing {
  const CompositionCall& call;
  const MxFormat& format;
  int axis;
  int64_t block;
  ElementType type;  ///< that steps compute in: f64 where x is f64, else f32

  FunctionBuilder& builder() const { return call.builder; }
  int64_t extent() const { return call.type_of(0).shape[static_cast<size_t>(axis)].extent; }
  BroadcastRule blocks() const {
    return {.mode = BroadcastMode::blocked, .axes = {axis}, .block = {block}};
  }
};

Status check_operands(const CompositionCall& call, const MxFormat& format) {
  const auto refused = [&](const std::string& found, std::string_view expected) {
    return call.mistake(fmt::format("{}, expected {} for {}", found, expected, format.name));
  };
  if (!computes(call.element_of(0))) {
    return refused(fmt::format("operand 0 is {}", name_of(call.element_of(0))),
                   "f16, bf16, f32 or f64");
  }
  if (call.result != format.element) {
    return refused(fmt::format("the result is {}", name_of(call.result)), name_of(format.element));
  }
  if (format.has_tensor_scale != call.has(tensor_scale)) {
    return refused(call.has(tensor_scale) ? "found a tensor's scale" : "found no tensor's scale",
                   format.has_tensor_scale ? "one" : "none");
  }
  const bool has_rule = !call.identifier("scale_rule").empty();
  if (has_rule && format.has_tensor_scale) return refused("found a scale_rule", "none");
  const bool has_scaling = !call.identifier("scaling").empty();
  if (has_scaling && !format.has_tensor_scale) return refused("found scaling", "none");
  if (!call.has(tensor_scale)) return {};
  const TensorType& scale = call.type_of(tensor_scale);
  if (scale.element == ElementType::f32 && may_be_single(scale.shape)) return {};
  return refused(fmt::format("operand 1 is {}", to_string(scale)), "an f32 scalar");
}

/// The extents are known or have names: a reshape to blocks cannot say what `?` is beside another
/// one, or where another extent may be 0.
Status check_extents(const CompositionCall& call) {
  const TensorType& x = call.type_of(0);
  const auto open = std::ranges::find(x.shape, Dim::any());
  const auto known = std::ranges::count_if(
      x.shape, [](const Dim& dim) { return dim.is_fixed() && dim.extent > 0; });
  if (open == x.shape.end() || known + 1 == std::ssize(x.shape)) return {};
  return call.mistake(fmt::format("axis {} of {} has no name, expected a number or a name, as ?n",
                                  open - x.shape.begin(), to_string(x)));
}

/// How many spatial axes x has as a pooled operand. The axis of blocks is one of them: where it is
/// among the first two, axes of one element stand before it.
constexpr int before_spatial = 2;  // images and channels
int spatial_axes(int rank, int axis) {
  return rank + std::max(before_spatial - axis, 0) - before_spatial;
}

/// The axis, whose extent is known.
Result<int> axis_of(const CompositionCall& call, int64_t block) {
  const TensorType& x = call.type_of(0);
  const int rank = call.rank_of(0);
  if (rank == 0) {
    return call.mistake(fmt::format("operand 0 is {}, expected rank 1 or more", to_string(x)));
  }
  const int64_t written = call.integer("axis", -1);
  if (written < -rank || written >= rank) {
    return call.mistake(
        fmt::format("axis = {}, expected {} to {} for {}", written, -rank, rank - 1, to_string(x)));
  }
  if (block < 1) return call.mistake(fmt::format("block = {}, expected at least 1", block));
  const auto axis = static_cast<int>(written < 0 ? written + rank : written);
  const Dim& extent = x.shape[static_cast<size_t>(axis)];
  if (!extent.is_fixed()) {
    return call.mistake(
        fmt::format("axis {} of {} is unknown, expected a number of elements", axis, to_string(x)));
  }
  const bool is_short = extent.extent > block && extent.extent % block != 0;
  if (!is_short || spatial_axes(rank, axis) <= max_spatial_axes) return axis;
  return call.mistake(fmt::format(
      "axis {} of {} has a short last block of {}, expected whole ones where the rank is {}", axis,
      to_string(x), block, rank));
}

/// x with its axis as two: the blocks, and the elements of one.
ValueId in_blocks(const Quantizing& q) {
  Shape target = q.call.type_of(0).shape;
  const auto at = target.begin() + q.axis;
  const int64_t count = at->extent / q.block;
  *at = Dim(count);
  target.insert(at + 1, Dim(q.block));
  return q.builder().reshape(q.call.operands[0], std::move(target));
}

ValueId scalar(const Quantizing& q, double number, ElementType type) {
  return scalar_of(q.builder(), static_cast<float>(number), type);
}

/// The largest magnitude of each block, the last of which is short: blocks are windows along a
/// spatial axis, of which the last one reaches into padding.
ValueId magnitudes_of_windows(const Quantizing& q) {
  FunctionBuilder& builder = q.builder();
  const ValueId sizes = builder.unary(OpKind::abs, q.call.operands[0]);
  const int added = std::max(before_spatial - q.axis, 0);
  const Shape own = q.call.type_of(0).shape;
  Shape shape(static_cast<size_t>(added), Dim(1));
  shape.insert(shape.end(), own.begin(), own.end());
  const auto axes = static_cast<size_t>(spatial_axes(q.call.rank_of(0), q.axis));
  const auto at = static_cast<size_t>(added + q.axis - before_spatial);
  ConvolutionOptions options;
  options.kernel_shape.assign(axes, 1);
  options.strides.assign(axes, 1);
  options.pads.assign(2 * axes, 0);
  options.kernel_shape[at] = q.block;
  options.strides[at] = q.block;
  options.pads[axes + at] = q.block - q.extent() % q.block;
  const ValueId largest = builder.max_pool(builder.reshape(sizes, shape), options);
  Shape of_blocks = own;
  of_blocks[static_cast<size_t>(q.axis)] = Dim(ceil_div(q.extent(), q.block));
  return builder.reshape(largest, of_blocks);
}

/// The largest magnitude of each block.
ValueId magnitudes(const Quantizing& q) {
  const ValueId largest =
      q.extent() % q.block != 0
          ? magnitudes_of_windows(q)
          : q.builder().reduce(OpKind::reduce_max_abs, in_blocks(q), {.axes = {{q.axis + 1}}});
  return in_type(q.builder(), largest, q.type);
}

/// Whether f32 holds every quotient of x's numbers by the powers of two of formats.
bool has_exact_f32_quotients(const Quantizing& q) { return bits_of(q.call.element_of(0)) == 16; }

/// What the largest magnitude of a block is divided by, before it becomes a power of two.
double divisor_of(const ElementRange& range, std::string_view rule) {
  const double power = std::ldexp(1, range.exponent);
  if (rule == "ceil_power") return range.largest;
  if (rule == "even_round") return power * (1 - std::ldexp(1, -range.mantissa_bits - 2));
  return power;
}

/// 1 / divisor, up where quotients are rounded down to a power of two, and down where up: then the
/// product with a number of at most 16 bits is on the right side of every power of two. Such a
/// number that is no power of two times the divisor is further from it than all roundings in f32.
float directed_reciprocal(double divisor, bool up) {
  const auto nearest = static_cast<float>(1 / divisor);
  const double product = divisor * nearest;  // exact: 7 bits by 24
  if (up ? product >= 1 : product <= 1) return nearest;
  return std::nextafter(nearest, up ? HUGE_VALF : 0.F);
}

/// The largest magnitude of a block, divided as the rule says. The quotient by a power of two is
/// exact; others of 32 and 64 bits are in f64, where they are on the right side of every power of
/// two.
ValueId scale_of_rule(const Quantizing& q, ValueId magnitude) {
  FunctionBuilder& builder = q.builder();
  const std::string_view rule = q.call.identifier("scale_rule");
  const double divisor = divisor_of(range_of(q.format), rule);
  const ElementType type = has_exact_f32_quotients(q) ? ElementType::f32 : ElementType::f64;
  const ValueId number = in_type(builder, magnitude, type);
  if (type == ElementType::f32) {
    const float factor = directed_reciprocal(divisor, rule != "ceil_power");
    return builder.binary(OpKind::mul, number, scalar(q, factor, type));
  }
  const bool is_power = std::ilogb(divisor) == std::log2(divisor);
  return is_power ? builder.binary(OpKind::mul, number, scalar(q, 1 / divisor, type))
                  : builder.binary(OpKind::div, number, scalar(q, divisor, type));
}

/// A power of two for each block, as f8e8m0.
ValueId power_scales(const Quantizing& q, ValueId magnitude) {
  FunctionBuilder& builder = q.builder();
  const ValueId infinity = scalar(q, HUGE_VAL, q.type);
  const ValueId nan = scalar(q, std::nan(""), q.type);
  const ValueId is_infinite = builder.binary(OpKind::equal, magnitude, infinity);
  const ValueId number = builder.select(is_infinite, nan, magnitude);
  const bool rounds_up = q.call.identifier("scale_rule") == "ceil_power";
  return builder.convert(scale_of_rule(q, number), ElementType::f8e8m0,
                         {.rounding = rounds_up ? Rounding::up : Rounding::down});
}

/// Quotients of numbers by the power of two of their block: the reciprocal is one too.
ValueId powers_elements(const Quantizing& q, ValueId scales) {
  FunctionBuilder& builder = q.builder();
  const ValueId numbers = in_type(builder, q.call.operands[0], q.type);
  const ValueId factors =
      builder.binary(OpKind::div, scalar(q, 1, q.type), in_type(builder, scales, q.type));
  return builder.binary(OpKind::mul, numbers, factors, q.blocks());
}

ValueId coded(const Quantizing& q, ValueId quotients) {
  FunctionBuilder& builder = q.builder();
  ConvertOptions options = {.overflow = Overflow::saturate};
  if (is_integer(q.format.element)) {
    options.rounding = Rounding::nearest_even;
    const ValueId unit = scalar(q, std::ldexp(1, q.format.fraction_bits), q.type);
    quotients = builder.binary(OpKind::mul, quotients, unit);
  } else if (!has_nans(q.format.element)) {
    options.nan = NanMode::zero;
  }
  return builder.convert(quotients, q.format.element, options);
}

/// Numbers over the factor of their block, as `scaling` says.
ValueId quotients_of(const Quantizing& q, ValueId factors) {
  FunctionBuilder& builder = q.builder();
  const ValueId numbers = in_type(builder, q.call.operands[0], q.type);
  if (q.call.identifier("scaling") != "reciprocal") {
    return builder.binary(OpKind::div, numbers, factors, q.blocks());
  }
  const ValueId reciprocals = builder.binary(OpKind::div, scalar(q, 1, q.type), factors);
  return builder.binary(OpKind::mul, numbers, reciprocals, q.blocks());
}

/// A block of zeros has scale 0, also where the tensor is zeros and so is its scale: 0 / 0 would
/// make every element NaN.
std::vector<ValueId> with_tensor_scale(const Quantizing& q) {
  FunctionBuilder& builder = q.builder();
  const ValueId common = in_type(builder, q.call.operands[tensor_scale], q.type);
  const ValueId zero = scalar(q, 0, q.type);
  const ValueId magnitude = magnitudes(q);
  const ValueId sixth = builder.binary(OpKind::div, magnitude, scalar(q, largest_f4e2m1, q.type));
  const ValueId quotient = builder.binary(OpKind::div, sixth, common);
  const ValueId is_zero = builder.binary(OpKind::equal, magnitude, zero);
  const ValueId scales = builder.convert(builder.select(is_zero, zero, quotient), q.format.scale,
                                         {.overflow = Overflow::saturate});
  const ValueId factors = builder.binary(OpKind::mul, in_type(builder, scales, q.type), common);
  return {coded(q, quotients_of(q, factors)), scales};
}

}  // namespace

Result<std::vector<ValueId>> define_quantize_mx(const CompositionCall& call) {
  const Result<const MxFormat*> format = mx_format_of(call);
  if (!format) return format.error();
  if (Status status = check_operands(call, **format); !status) return status.error();
  if (Status status = check_extents(call); !status) return status.error();
  const int64_t block = call.integer("block", (*format)->block);
  const Result<int> axis = axis_of(call, block);
  if (!axis) return axis.error();
  const bool is_f64 = call.element_of(0) == ElementType::f64;
  Quantizing q{call, **format, *axis, block, is_f64 ? ElementType::f64 : ElementType::f32};
  // A block that has more elements than the axis has them all.
  q.block = std::min(block, std::max<int64_t>(q.extent(), 1));
  if ((*format)->has_tensor_scale) return with_tensor_scale(q);
  const ValueId scales = power_scales(q, magnitudes(q));
  return std::vector{coded(q, powers_elements(q, scales)), scales};
}

Result<std::vector<ValueId>> define_nvfp4_tensor_scale(const CompositionCall& call) {
  if (!computes(call.element_of(0))) {
    return call.mistake(fmt::format("operand 0 is {}, expected f16, bf16, f32 or f64",
                                    name_of(call.element_of(0))));
  }
  FunctionBuilder& builder = call.builder;
  const ValueId magnitude = builder.reduce(OpKind::reduce_max_abs, call.operands[0]);
  const ValueId number = in_type(builder, magnitude, ElementType::f32);
  constexpr auto largest = static_cast<float>(largest_f4e2m1 * largest_f8e4m3);
  return std::vector{
      builder.binary(OpKind::div, number, scalar_of(builder, largest, ElementType::f32))};
}

}  // namespace castor
