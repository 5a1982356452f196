// SPDX-License-Identifier: Apache-2.0
// Drawing compositions, on values that are there; their parameters are constants.
#include <algorithm>

#include "ir/composition/mx_formats.hpp"
#include "tools/fuzz/draw_blocks.hpp"
#include "tools/fuzz/generate_convolution.hpp"
#include "tools/fuzz/generate_matmul.hpp"
#include "tools/fuzz/generate_operations.hpp"

namespace castor::fuzz {

namespace {

using enum ElementType;

constexpr std::array quantized_types = {u8,     i8,     u16,    i16,        u4,     i4,
                                        u2,     i2,     f8e4m3, f8e4m3fnuz, f8e5m2, f8e5m2fnuz,
                                        f4e2m1, f6e2m3, u3,     u6};
constexpr std::array computed_types = {f32, f32, f16, bf16, f64};

bool is_quantized_operand(ElementType type) {
  return (is_integer(type) && bits_of(type) <= 32) || (is_float(type) && bits_of(type) <= 8);
}

bool is_float8(ElementType type) { return is_float(type) && bits_of(type) == 8; }

/// The shape of a scale, and the attributes that say what it is for.
struct DrawnGranularity {
  Dims shape;
  Attributes attributes;
};

int64_t draw_axis(Random& random, int rank) {
  return static_cast<int64_t>(random.below(static_cast<size_t>(rank)));
}

AttributeValue list_of(const std::vector<int64_t>& numbers) {
  AttributeValue::List list;
  for (const int64_t number : numbers) list.push_back({number});
  return {std::move(list)};
}

DrawnGranularity draw_granularity(Random& random, const Dims& x) {
  if (x.empty() || random.percent(20)) return {};
  const int64_t axis = draw_axis(random, x.rank());
  const int64_t written = random.percent(30) ? axis - x.rank() : axis;
  switch (random.below(5)) {
    case 0: return {{1}, {}};
    case 1: return {{x[static_cast<int>(axis)]}, {{"axis", {written}}}};
    case 2: {
      Dims shape = x;
      for (int64_t& extent : shape) extent = random.percent(50) ? 1 : extent;
      if (x.rank() == 1) shape = {1};
      return {shape, {}};
    }
    case 3: {
      const BroadcastRule rule{
          .mode = BroadcastMode::blocked, .axes = {axis}, .block = {random.between(1, 40)}};
      return {blocks_of(x, rule), {{"axis", {written}}, {"block_size", {rule.block[0]}}}};
    }
    default: {
      const BroadcastRule rule = draw_blocks(random, x);
      return {blocks_of(x, rule), {{"axes", list_of(rule.axes)}, {"block", list_of(rule.block)}}};
    }
  }
}

}  // namespace

/// A value of a type that is taken; another is converted to one.
size_t OperationDrawer::value_for(bool quantizes) {
  const size_t value = pick_value(values_of(OperandClass::any));
  const ElementType type = program_.element_of(value);
  const bool computes = is_float(type) && bits_of(type) >= 16;
  if (quantizes ? computes || type == i32 : is_quantized_operand(type)) return value;
  return converted(value, quantizes ? random_.pick(computed_types) : random_.pick(quantized_types));
}

bool OperationDrawer::draw_dynamic(OpKind op) {
  constexpr std::array linear_types = {u8, u8, u4, u16, u3, i8, i4, i16};
  constexpr std::array symmetric_types = {i8, i8, i4, i16, f8e4m3, f8e5m2, f4e2m1, f6e2m3};
  const bool is_symmetric = op == OpKind::dynamic_quantize_symmetric;
  size_t x = pick_value(values_of(OperandClass::any));
  const ElementType type = program_.element_of(x);
  if (!is_float(type) || bits_of(type) < 16) x = converted(x, random_.pick(computed_types));
  OperationSpec operation{.op = op, .operands = {x}};
  operation.element = is_symmetric ? random_.pick(symmetric_types) : random_.pick(linear_types);
  const int rank = program_.shape_of(x).rank();
  if (random_.percent(60)) {
    std::vector<int64_t> axes;
    for (int64_t axis = 0; axis < rank; ++axis) {
      if (random_.percent(60)) axes.push_back(random_.percent(30) ? axis - rank : axis);
    }
    operation.attributes.push_back({"axes", list_of(axes)});
  }
  if (random_.percent(30)) {
    operation.attributes.push_back({"scaling", {Identifier{"reciprocal"}}});
  }
  return add(std::move(operation));
}

bool OperationDrawer::draw_linear(OpKind op) {
  const bool quantizes = op == OpKind::quantize_linear;
  const size_t x = value_for(quantizes);
  const ElementType from = program_.element_of(x);
  DrawnGranularity drawn = draw_granularity(random_, program_.shape_of(x));
  const ElementType to = quantizes ? random_.pick(quantized_types) : random_.pick(computed_types);
  OperationSpec operation{
      .op = op, .operands = {x}, .attributes = std::move(drawn.attributes), .element = to};
  const ElementType scale = random_.percent(20) ? f8e8m0 : random_.pick(computed_types);
  if (!add_constant(scale, drawn.shape)) return false;
  operation.operands.push_back(last());
  if (random_.percent(60)) {
    if (!add_constant(quantizes ? to : from, drawn.shape)) return false;
    operation.operands.push_back(last());
  }
  if (quantizes && random_.percent(20)) {
    operation.attributes.push_back({"scaling", {Identifier{"reciprocal"}}});
  }
  if (quantizes && random_.percent(20)) {
    const std::string precision(name_of(random_.pick(computed_types)));
    operation.attributes.push_back({"precision", {Identifier{precision}}});
  }
  if (quantizes && is_float8(to) && random_.percent(30)) {
    operation.attributes.push_back({"saturate", {false}});
  }
  return add(std::move(operation));
}

bool OperationDrawer::add_parameter(OperationSpec& operation, ElementType type, const Dims& shape) {
  if (!add_constant(type, shape)) return false;
  operation.operands.push_back(last());
  return true;
}

/// A value of bytes of at least that rank, if there is one.
std::optional<size_t> OperationDrawer::bytes_of_rank(int min_rank) {
  std::vector<size_t> values;
  for (size_t value : values_of(OperandClass::any)) {
    if (program_.shape_of(value).rank() >= min_rank) values.push_back(value);
  }
  if (values.empty()) return {};
  const size_t value = as_bytes(pick_value(values));
  return admits(OperandClass::byte, program_.element_of(value)) ? std::optional(value)
                                                                : std::nullopt;
}

bool OperationDrawer::draw_qlinear_conv() {
  const std::optional<size_t> x = bytes_of_rank(3);
  if (!x) return false;
  const DrawnConvolution drawn = draw_convolution(random_, program_.shape_of(*x));
  const auto one = [&] { return random_.percent(50) ? Dims{} : Dims{1}; };
  const Dims channels = {drawn.w[0]};
  const ElementType byte = program_.element_of(*x);
  const ElementType w = random_.percent(50) ? u8 : i8;
  const ElementType scale = random_.percent(70) ? f32 : random_.percent(50) ? f16 : bf16;
  OperationSpec operation{
      .op = OpKind::qlinear_conv, .operands = {*x}, .attributes = attributes_of(drawn.options)};
  const bool has_all = add_parameter(operation, scale, one()) &&
                       add_parameter(operation, byte, one()) &&
                       add_parameter(operation, w, drawn.w) &&
                       add_parameter(operation, scale, random_.percent(60) ? channels : one()) &&
                       add_parameter(operation, w, random_.percent(50) ? channels : one()) &&
                       add_parameter(operation, scale, one()) &&
                       add_parameter(operation, random_.percent(50) ? u8 : i8, one());
  if (!has_all) return false;
  if (random_.percent(60) && !add_parameter(operation, i32, channels)) return false;
  return add(std::move(operation));
}

bool OperationDrawer::draw_qlinear_matmul() {
  const std::optional<size_t> a = bytes_of_rank(1);
  if (!a) return false;
  const DrawnMatmul drawn = draw_matmul(random_, program_.shape_of(*a));
  const ElementType b = random_.percent(50) ? u8 : i8;
  const auto scale_of = [&](const Dims& zero_points) {
    return random_.percent(40) ? Dims{} : zero_points;
  };
  OperationSpec operation{.op = OpKind::qlinear_matmul, .operands = {*a}};
  const Dims y = scale_of(drawn.a_zero);
  const bool has_all = add_parameter(operation, f32, scale_of(drawn.a_zero)) &&
                       add_parameter(operation, program_.element_of(*a), drawn.a_zero) &&
                       add_parameter(operation, b, drawn.b) &&
                       add_parameter(operation, f32, scale_of(drawn.b_zero)) &&
                       add_parameter(operation, b, drawn.b_zero) &&
                       add_parameter(operation, f32, y) &&
                       add_parameter(operation, random_.percent(50) ? u8 : i8, y);
  return has_all && add(std::move(operation));
}

bool OperationDrawer::draw_quantize_mx() {
  const MxFormat& format = random_.pick(mx_formats);
  size_t x = pick_value(values_of(OperandClass::any));
  const ElementType type = program_.element_of(x);
  if (!is_float(type) || bits_of(type) < 16) x = converted(x, random_.pick(computed_types));
  const Dims shape = program_.shape_of(x);
  if (shape.empty()) return false;
  const int64_t axis = draw_axis(random_, shape.rank());
  const int64_t extent = shape[static_cast<int>(axis)];
  // Blocks of the format's size, or the next smaller one that divides the extent; or of any size.
  int64_t block = format.block;
  if (!random_.percent(60)) {
    block = random_.between(1, 40);
  } else {
    while (extent % block != 0) --block;
  }
  OperationSpec operation{.op = OpKind::quantize_mx,
                          .operands = {x},
                          .attributes = {{"format", {Identifier{std::string(format.name)}}},
                                         {"axis", {axis}},
                                         {"block", {block}}},
                          .element = format.element};
  if (format.has_tensor_scale) {
    if (random_.percent(40)) {
      operation.attributes.push_back({"scaling", {Identifier{"reciprocal"}}});
    }
    return add_parameter(operation, f32, {}) && add(operation);
  }
  constexpr std::array rules = {"ocp_floor", "ceil_power", "even_round"};
  if (random_.percent(70)) {
    operation.attributes.push_back({"scale_rule", {Identifier{random_.pick(rules)}}});
  }
  return add(std::move(operation));
}

bool OperationDrawer::draw_dequantize_mx() {
  const MxFormat& format = random_.pick(mx_formats);
  const size_t value = pick_value(values_of(OperandClass::any));
  if (program_.shape_of(value).empty()) return false;
  const size_t x = converted(value, format.element);
  if (program_.element_of(x) != format.element) return false;
  const Dims& shape = program_.shape_of(x);
  const int64_t axis = draw_axis(random_, shape.rank());
  const BroadcastRule rule{.mode = BroadcastMode::blocked,
                           .axes = {axis},
                           .block = {random_.percent(50) ? format.block : random_.between(1, 40)}};
  OperationSpec operation{.op = OpKind::dequantize_mx,
                          .operands = {x},
                          .attributes = {{"format", {Identifier{std::string(format.name)}}},
                                         {"axis", {axis}},
                                         {"block", {rule.block[0]}}},
                          .element = random_.pick(computed_types)};
  if (!add_parameter(operation, format.scale, blocks_of(shape, rule))) return false;
  const bool has_tensor_scale = format.has_tensor_scale && random_.percent(60);
  if (has_tensor_scale && !add_parameter(operation, f32, {})) return false;
  return add(std::move(operation));
}

}  // namespace castor::fuzz
