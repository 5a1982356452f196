// SPDX-License-Identifier: Apache-2.0
// Drawing functions of all ops: elementwise operations.
#include "tools/fuzz/generate_operations.hpp"

#include <array>
#include <cmath>

#include "ir/types/promote.hpp"
#include "tools/fuzz/cells.hpp"
#include "tools/fuzz/generate_convolution.hpp"
#include "tools/fuzz/generate_matmul.hpp"

namespace castor::fuzz {

namespace {

/// A few operations, at times enough of them for registers to run out.
size_t draw_length(Random& random) {
  const size_t kind = random.below(100);
  if (kind < 25) return 1 + random.below(4);
  if (kind < 85) return 2 + random.below(14);
  return 13 + random.below(28);
}

OpKind draw_op(Random& random) {
  constexpr std::array often = {OpKind::convert,   OpKind::convert_promote_types,
                                OpKind::broadcast, OpKind::reshape,
                                OpKind::select,    OpKind::add,
                                OpKind::mul,       OpKind::sub};
  if (random.percent(20)) return random.pick(often);
  while (true) {  // convolutions and products are drawn with inputs made for them
    const auto op = static_cast<OpKind>(random.below(op_count));
    if (info(op).family != OpFamily::convolution) return op;
  }
}

}  // namespace

bool OperationDrawer::draw_convert() {
  const size_t value = pick_value(values_of(OperandClass::any));
  const ElementType to = random_.percent(70) ? random_.pick(palette_) : draw_element(random_);
  return add(conversion(value, to, draw_options(random_, program_.element_of(value), to)));
}

bool OperationDrawer::draw_promotion() {
  const std::vector<size_t> values = values_of(OperandClass::any);
  const size_t a = pick_value(values);
  const size_t b = random_.pick(values);
  PromoteOptions options;
  options.promote_unsafe = random_.percent(80);
  options.pytorch_scalar_promotion = random_.percent(30);
  if (random_.percent(20)) {
    options.u64_integer_promotion_target =
        random_.percent(50) ? ElementType::i64 : draw_element(random_);
  }
  OperationSpec operation{.op = OpKind::convert_promote_types,
                          .operands = {a, b},
                          .attributes = attributes_of(options)};
  if (add(operation)) return true;
  options.promote_unsafe = true;
  operation.attributes = attributes_of(options);
  return add(std::move(operation));
}

bool OperationDrawer::draw_unary(OpKind op) {
  const std::optional<size_t> value = operand_of(info(op).types);
  return value &&
         (op == OpKind::clamp ? draw_clamp(*value) : add({.op = op, .operands = {*value}}));
}

bool OperationDrawer::draw_clamp(size_t value) {
  constexpr std::array<double, 14> bounds = {0.0,   -0.0, 1.0,  -1.0,  6.0,    2.5,   -2.5,
                                             127.0, -8.0, 0.25, 1e-40, 3.0e38, 65504, -1e300};
  Attributes attributes;
  const auto add_bound = [&](const char* name) {
    if (random_.percent(25)) return;
    double bound = random_.pick(bounds);
    if (random_.percent(6)) bound = random_.percent(50) ? HUGE_VAL : -HUGE_VAL;
    if (random_.percent(30)) {
      attributes.push_back({name, {random_.between(-200, 300)}});
    } else {
      attributes.push_back({name, {bound}});
    }
  };
  add_bound("lo");
  add_bound("hi");
  return add({.op = OpKind::clamp, .operands = {value}, .attributes = std::move(attributes)});
}

/// B along any of A's axes, in random order.
bool OperationDrawer::combine_pdpd(OpKind op, size_t a, size_t b) {
  const int64_t rank = program_.shape_of(a).rank();
  const int64_t first = random_.between(-1, rank);
  for (int64_t i = 0; i <= rank + 1; ++i) {
    const int64_t axis = -1 + (first + 1 + i) % (rank + 2);
    const BroadcastRule rule{BroadcastMode::pdpd, axis, {}};
    if (add({.op = op, .operands = {a, b}, .attributes = attributes_of(op, rule)})) return true;
  }
  return false;
}

/// In a mode in which the shapes fit.
bool OperationDrawer::combine(OpKind op, size_t a, size_t b) {
  if (random_.percent(15) && combine_pdpd(op, a, b)) return true;
  const BroadcastRule none{BroadcastMode::none, -1, {}};
  if (random_.percent(15) &&
      add({.op = op, .operands = {a, b}, .attributes = attributes_of(op, none)})) {
    return true;
  }
  return add({.op = op, .operands = {a, b}});
}

bool OperationDrawer::draw_binary(OpKind op, size_t a) {
  const ElementType type = program_.element_of(a);
  if (random_.percent(8)) return combine_blocked(op, a);
  for (int attempt = 0; attempt < 3; ++attempt) {
    const size_t b = pick_value(values_of(type));
    if (b == a && random_.percent(80)) continue;
    if (random_.percent(50) ? combine(op, b, a) : combine(op, a, b)) return true;
  }
  const size_t other = random_.pick(values_of(OperandClass::any));
  if (random_.percent(60)) {
    const size_t b = converted(other, type);
    if (program_.element_of(b) == type && combine(op, a, b)) return true;
  }
  if (random_.percent(70) && add_constant(type, {})) return combine(op, a, last());
  return combine(op, a, a);
}

/// A boolean value; where there is none, a comparison or a conversion makes one.
size_t OperationDrawer::draw_condition() {
  const std::vector<size_t> booleans = values_of(ElementType::boolean);
  if (!booleans.empty() && random_.percent(80)) return random_.pick(booleans);
  const size_t value = random_.pick(values_of(OperandClass::any));
  if (random_.percent(70) && draw_binary(OpKind::less, value)) return last();
  return converted(value, ElementType::boolean);
}

bool OperationDrawer::draw_select(size_t a) {
  const size_t condition = draw_condition();
  if (program_.element_of(condition) != ElementType::boolean) return false;
  const std::vector<size_t> values = values_of(program_.element_of(a));
  const BroadcastRule none{BroadcastMode::none, -1, {}};
  for (int attempt = 0; attempt < 4; ++attempt) {
    const size_t b = attempt == 3 ? a : random_.pick(values);
    OperationSpec operation{.op = OpKind::select, .operands = {condition, a, b}};
    if (random_.percent(20)) operation.attributes = attributes_of(OpKind::select, none);
    if (add(operation)) return true;
    operation.attributes.clear();
    if (add(std::move(operation))) return true;
  }
  return false;
}

bool OperationDrawer::draw(OpKind op) {
  if (op == OpKind::requantize) return draw_requantize(false);
  if (op != OpKind::constant && values_of(OperandClass::any).empty()) return false;
  switch (op) {
    case OpKind::constant: return draw_constant();
    case OpKind::convert: return draw_convert();
    case OpKind::convert_promote_types: return draw_promotion();
    case OpKind::broadcast: return draw_broadcast();
    case OpKind::reshape: return draw_reshape();
    case OpKind::select: return draw_select(pick_value(values_of(OperandClass::any)));
    case OpKind::look_up: return draw_look_up();
    case OpKind::max_pool: return draw_pooling();
    case OpKind::conv_integer: return convolve_any();
    case OpKind::matmul_integer: return multiply_any();
    case OpKind::quantize_linear:
    case OpKind::dequantize_linear: return draw_linear(op);
    case OpKind::dynamic_quantize_linear:
    case OpKind::dynamic_quantize_symmetric: return draw_dynamic(op);
    case OpKind::qlinear_conv: return draw_qlinear_conv();
    case OpKind::qlinear_matmul: return draw_qlinear_matmul();
    case OpKind::dequantize_mx: return draw_dequantize_mx();
    case OpKind::quantize_mx: return draw_quantize_mx();
    default: break;
  }
  if (info(op).family == OpFamily::reduction) return draw_reduction(op);
  if (info(op).operands == 1) return draw_unary(op);
  const std::optional<size_t> a = operand_of(info(op).types);
  return a && draw_binary(op, *a);
}

bool OperationDrawer::draw_on(OpKind op, ElementType type) {
  palette_ = {type};
  if (op == OpKind::conv_integer) {
    draw_convolution_of(type);
    return !program_.operations.empty();
  }
  if (op == OpKind::matmul_integer) {
    draw_matmul_of(type);
    return !program_.operations.empty();
  }
  if (op == OpKind::requantize) {
    draw_requantization_of(type);
    return true;
  }
  if (op == OpKind::look_up) return draw_look_up_of(type, draw_element(random_), true);
  if (op == OpKind::qlinear_conv) add_input(type, draw_image(random_));
  if (op == OpKind::qlinear_matmul) add_input(type, draw_matrix(random_));
  const bool has_parameters = info(op).family == OpFamily::composition;  // which are constants
  for (int i = 0; (i < info(op).operands && !has_parameters) || i < 1; ++i) add_input(type);
  if (op == OpKind::max_pool) add_input(type, draw_image(random_));
  if (op == OpKind::select) add_input(ElementType::boolean);
  for (int attempt = 0; attempt < 8; ++attempt) {
    if (draw(op)) return true;
  }
  return false;
}

void OperationDrawer::draw_many(size_t length) {
  constexpr int attempts = 6;  // for each
  for (size_t i = 0; i < length; ++i) {
    for (int attempt = 0; attempt < attempts && !draw(draw_op(random_)); ++attempt) {
    }
  }
}

void draw_operations(Random& random, Program& program) {
  OperationDrawer drawer(random, program);
  drawer.draw_inputs();
  drawer.draw_many(draw_length(random));
  if (program.operations.empty()) drawer.draw(OpKind::convert);
  drawer.draw_results();
  program.excess_precision = random.percent(12);
}

}  // namespace castor::fuzz
