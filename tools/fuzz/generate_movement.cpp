// SPDX-License-Identifier: Apache-2.0
// Drawing `broadcast` and `reshape`, and operations for a mode.
#include <algorithm>

#include "tools/fuzz/cells.hpp"
#include "tools/fuzz/draw_blocks.hpp"
#include "tools/fuzz/generate_operations.hpp"

namespace castor::fuzz {

namespace {

void insert(Dims& shape, int at, int64_t extent) {
  Dims longer;
  for (int axis = 0; axis <= shape.rank(); ++axis) {
    if (axis == at) longer.push_back(extent);
    if (axis < shape.rank()) longer.push_back(shape[axis]);
  }
  shape = longer;
}

void erase(Dims& shape, int at) {
  Dims shorter;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis != at) shorter.push_back(shape[axis]);
  }
  shape = shorter;
}

int draw_axis(Random& random, const Dims& shape) {
  return static_cast<int>(random.below(static_cast<size_t>(shape.rank())));
}

/// A factor of the extent, which is at least 1.
int64_t draw_factor(Random& random, int64_t extent) {
  std::vector<int64_t> factors;
  for (int64_t factor = 1; factor <= extent; ++factor) {
    if (extent % factor == 0) factors.push_back(factor);
  }
  return random.pick(factors);
}

/// One axis more or less, and equally many elements.
void change_axes(Random& random, Dims& shape) {
  const size_t kind = random.below(4);
  if (kind == 0 && shape.rank() > 1) {  // two become one
    const int axis = static_cast<int>(random.below(static_cast<size_t>(shape.rank()) - 1));
    shape[axis + 1] *= shape[axis];
    erase(shape, axis);
  } else if (kind == 1 && !shape.empty() && shape.rank() < max_drawn_rank) {  // one becomes two
    const int axis = draw_axis(random, shape);
    if (shape[axis] == 0) return;
    const int64_t factor = draw_factor(random, shape[axis]);
    shape[axis] /= factor;
    insert(shape, axis, factor);
  } else if (kind == 2 && shape.rank() < max_drawn_rank) {
    insert(shape, static_cast<int>(random.below(static_cast<size_t>(shape.rank()) + 1)), 1);
  } else if (kind == 3 && !shape.empty()) {
    const int axis = draw_axis(random, shape);
    if (shape[axis] == 1) erase(shape, axis);
  }
}

/// Axes of 1 become longer.
void widen(Random& random, Dims& shape, const Dims& space) {
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int along = axis + space.rank() - shape.rank();
    if (shape[axis] != 1 || random.percent(30)) continue;
    shape[axis] = along >= 0 ? space[along] : random.between(1, 4);
  }
}

/// A target in which the data keeps its axes on the right.
Dims target_on_the_right(Random& random, Dims shape, const Dims& space) {
  while (shape.rank() < space.rank() && random.percent(70)) insert(shape, 0, 1);
  while (shape.rank() < max_drawn_rank && random.percent(15)) insert(shape, 0, 1);
  widen(random, shape, space);
  return shape;
}

}  // namespace

bool OperationDrawer::draw_reshape() {
  const size_t value = pick_value(values_of(OperandClass::any));
  Dims shape = program_.shape_of(value);
  const size_t changes = 1 + random_.below(3);
  for (size_t i = 0; i < changes; ++i) change_axes(random_, shape);
  OperationSpec operation{
      .op = OpKind::reshape, .operands = {value}, .target = writer_.write_target(program_, shape)};
  if (!shape.empty() && count_of(shape) > 0 && random_.percent(30)) {
    operation.target[static_cast<size_t>(draw_axis(random_, shape))] = {AxisSpec::Kind::any, 1, 0};
  }
  return add(std::move(operation));
}

bool OperationDrawer::broadcast_as(size_t value, BroadcastMode mode) {
  const Dims& data = program_.shape_of(value);
  BroadcastRule rule{mode, -1, {}};
  Dims target = target_on_the_right(random_, data, space_);
  if (mode == BroadcastMode::bidirectional) {
    for (int64_t& extent : target) extent = random_.percent(30) ? 1 : extent;
    if (random_.percent(30) && !target.empty()) erase(target, 0);
  } else if (mode == BroadcastMode::pdpd) {
    int ones = 0;  // ones at the data's end
    while (ones < data.rank() && data[data.rank() - 1 - ones] == 1) ++ones;
    target = data;
    widen(random_, target, space_);
    const int64_t dropped = random_.between(0, ones);
    for (int64_t i = 0; i < dropped && target.rank() > 0; ++i) erase(target, target.rank() - 1);
    const int64_t missing = dropped + random_.between(0, 2);
    rule.axis = random_.between(0, missing);
    for (int64_t i = 0; i < missing && target.rank() < max_drawn_rank; ++i) {
      insert(target, i < rule.axis ? 0 : target.rank(), random_.between(1, 4));
    }
    if (missing == 0 && random_.percent(50)) rule.axis = -1;
  } else if (mode == BroadcastMode::explicitly) {
    target = Dims{};
    for (int axis = 0; axis < data.rank(); ++axis) {
      while (target.rank() + data.rank() - axis < max_drawn_rank && random_.percent(30)) {
        target.push_back(random_.between(1, 5));
      }
      rule.axes.push_back(target.rank());
      target.push_back(data[axis] == 1 ? random_.between(1, 6) : data[axis]);
    }
    if (target.rank() < max_drawn_rank && random_.percent(50))
      target.push_back(random_.between(1, 5));
  } else if (mode == BroadcastMode::blocked) {
    rule = draw_blocks(random_, data);
    target = target_of_blocks(random_, data, rule);
  }
  return add({.op = OpKind::broadcast,
              .operands = {value},
              .attributes = attributes_of(OpKind::broadcast, rule),
              .target = writer_.write_target(program_, target)});
}

bool OperationDrawer::draw_broadcast() {
  constexpr std::array modes = {BroadcastMode::numpy,      BroadcastMode::numpy,
                                BroadcastMode::pdpd,       BroadcastMode::bidirectional,
                                BroadcastMode::explicitly, BroadcastMode::blocked};
  return broadcast_as(pick_value(values_of(OperandClass::any)), random_.pick(modes));
}

/// B is a constant of one element for each block.
bool OperationDrawer::combine_blocked(OpKind op, size_t a) {
  const BroadcastRule rule = draw_blocks(random_, program_.shape_of(a));
  if (!add_constant(program_.element_of(a), blocks_of(program_.shape_of(a), rule))) return false;
  return add({.op = op, .operands = {a, last()}, .attributes = attributes_of(op, rule)});
}

bool OperationDrawer::draw_mode(OpKind op, BroadcastMode mode) {
  const ElementType type = palette_type(info(op).types);
  const size_t a = add_input(type);
  if (op == OpKind::broadcast) return broadcast_as(a, mode);
  if (op == OpKind::select) {
    const size_t condition = add_input(ElementType::boolean);
    const BroadcastRule rule{mode, -1, {}};
    return add({.op = op, .operands = {condition, a, a}, .attributes = attributes_of(op, rule)});
  }
  if (mode == BroadcastMode::blocked) {
    const BroadcastRule rule = draw_blocks(random_, program_.shape_of(a));
    const size_t b = add_input(type, blocks_of(program_.shape_of(a), rule));
    return add({.op = op, .operands = {a, b}, .attributes = attributes_of(op, rule)});
  }
  const size_t b = add_input(type);
  if (mode == BroadcastMode::pdpd) return combine_pdpd(op, a, b);
  return add({.op = op,
              .operands = {a, mode == BroadcastMode::none ? a : b},
              .attributes = attributes_of(op, {mode, -1, {}})});
}

}  // namespace castor::fuzz
