// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/generate_requantize.hpp"

#include <algorithm>

#include "ir/verify/requantize.hpp"
#include "tools/fuzz/draw_parameters.hpp"
#include "tools/fuzz/generate.hpp"
#include "tools/fuzz/generate_operations.hpp"
#include "tools/testing/samples.hpp"

namespace castor::fuzz {

namespace {

constexpr int64_t max_requantized = 5000;  // elements

bool is_asymmetric(const std::optional<QuantizedFormat>& format) {
  return format && info(*format).is_asymmetric;
}

std::optional<QuantizedFormat> draw_format(Random& random) {
  const size_t number = random.below(quantized_table.size() + 1);
  if (number == quantized_table.size()) return {};
  return quantized_table[number].format;
}

RequantizeOptions draw_options(Random& random) {
  return {static_cast<RequantizeArithmetic>(random.below(2)),
          static_cast<RequantizeRounding>(random.below(2))};
}

Dims draw_requantized_shape(Random& random, int min_rank) {
  if (min_rank == 0 && random.percent(50)) return draw_space(random);
  const auto rank = static_cast<int>(random.between(min_rank, std::max(min_rank, 5)));
  return draw_shape(random, rank, std::max<int64_t>(draw_count(random), min_rank > 0 ? 1 : 0));
}

int draw_axis(Random& random, int rank, AxisPosition place) {
  switch (place) {
    case AxisPosition::outermost: return 0;
    case AxisPosition::innermost: return rank - 1;
    case AxisPosition::middle: break;
  }
  return static_cast<int>(random.between(1, rank - 2));
}

void draw_axes(Random& random, DrawnRequantization& drawn) {
  if (drawn.shape.empty()) return;
  const auto axis = static_cast<int>(random.below(static_cast<size_t>(drawn.shape.rank())));
  for (DrawnSide* side : {&drawn.from, &drawn.to}) {
    if (is_asymmetric(side->format) && random.percent(50)) side->axis = axis;
  }
}

/// Shape and axes as the cell has them, and formats that can be so.
void draw_slices(Random& random, const SliceCell& cell, DrawnRequantization& drawn) {
  const auto sides = static_cast<size_t>(cell.sides);
  if (sides == 0) {
    if (cell.given == GivenIn::both) drawn.to.format = QuantizedFormat::sa8;
    if (!drawn.from.format) drawn.to.format = QuantizedFormat::sa32;
    drawn.shape = draw_requantized_shape(random, 0);
    return;
  }
  const int min_rank = cell.place == AxisPosition::middle ? 3 : 2;
  drawn.shape = draw_requantized_shape(random, min_rank);
  const int axis = draw_axis(random, drawn.shape.rank(), cell.place);
  size_t bit = 1;
  for (DrawnSide* side : {&drawn.from, &drawn.to}) {
    if ((sides & bit) != 0) {
      side->format = random.percent(50) ? QuantizedFormat::sa8 : QuantizedFormat::sa32;
      side->axis = axis;
    }
    bit *= 2;
  }
}

/// The axis along which types list parameters, whose extent is a number then; -1: none.
int listed_axis(const DrawnRequantization& drawn) {
  for (const DrawnSide* side : {&drawn.from, &drawn.to}) {
    const bool are_all_open = std::ranges::find(side->is_open, false) == side->is_open.end();
    if (side->axis >= 0 && !are_all_open) return side->axis;
  }
  return -1;
}

/// Half steps of the destination.
DataSpec half_steps(const DrawnSide& to) {
  DataSpec data{.kind = DataSpec::Kind::halves};
  data.scale = std::max(1, to.ranges[0].min);
  data.frac = to.ranges[1].min;
  return data;
}

/// A dimension that fits one of a type.
AxisSpec axis_like(Random& random, const Dim& dim, int64_t extent) {
  AxisSpec axis{AxisSpec::Kind::fixed, extent, 0};
  if (!dim.is_fixed() || random.percent(25)) axis.kind = AxisSpec::Kind::any;
  if (dim.name.empty() || random.percent(30)) return axis;
  return {AxisSpec::Kind::named, extent, static_cast<size_t>(dim.name[0] - 'a')};
}

}  // namespace

void draw_given(Random& random, DrawnRequantization& drawn, GivenIn given) {
  bool is_next_open = random.percent(50);
  for (DrawnSide* side : {&drawn.from, &drawn.to}) {
    for (size_t r = 0; r < quantization_rules.size(); ++r) {
      side->is_open[r] = given != GivenIn::types && (given == GivenIn::operands || is_next_open);
      if (side->has(quantization_rules[r])) is_next_open = !is_next_open;
    }
  }
}

DrawnRequantization draw_requantization_like(Random& random, const RequantizeCell* formats,
                                             const SliceCell* slices) {
  DrawnRequantization drawn;
  drawn.from.format = formats ? formats->from : draw_format(random);
  drawn.to.format = formats ? formats->to : draw_format(random);
  drawn.options = formats ? formats->options : draw_options(random);
  if (slices != nullptr) {
    draw_slices(random, *slices, drawn);
    draw_given(random, drawn, slices->given);
  } else {
    drawn.shape = draw_requantized_shape(random, formats ? 1 : 0);
    draw_axes(random, drawn);
    const size_t kind = random.below(10);
    draw_given(random, drawn,
               kind < 6   ? GivenIn::types
               : kind < 8 ? GivenIn::operands
                          : GivenIn::both);
  }
  draw_ranges(random, drawn.from, drawn.to);
  return drawn;
}

size_t OperationDrawer::parameter_input(const ParameterOperand& operand) {
  InputSpec input;
  input.element = operand.element;
  input.axes = operand.axes;
  input.data.kind = DataSpec::Kind::range;
  input.data.min = operand.range.min;
  input.data.max = operand.range.max;
  return add_input(std::move(input));
}

/// The constant, or nothing where no work is left.
size_t OperationDrawer::parameter_constant(const ParameterOperand& operand) {
  OperationSpec constant{.op = OpKind::constant, .element = operand.element};
  for (int64_t extent : program_.extents_of(operand.axes)) {
    constant.target.push_back({AxisSpec::Kind::fixed, extent, 0});
  }
  const int64_t entries = count_of(program_.extents_of(operand.axes));
  constant.patterns = draw_elements(random_, operand, entries);
  return add(std::move(constant)) ? last() : no_operand;
}

bool OperationDrawer::requantize(size_t x, const DrawnRequantization& drawn, bool may_add_inputs) {
  const TensorType type = program_.values[x].type;
  const Dims shape = program_.shape_of(x);
  const auto slices = [&](int axis) { return axis < 0 ? int64_t{1} : shape[axis]; };
  OperationSpec operation{
      .op = OpKind::requantize,
      .operands = std::vector<size_t>(requantize_operands, no_operand),
      .attributes = attributes_of(drawn.options),
      .element = drawn.to.element(),
      .quantization = draw_quantization(random_, drawn.to, slices(drawn.to.axis))};
  std::vector<std::pair<size_t, ParameterOperand>> constants;
  const auto take = [&](size_t first, const Quantization& quantization, const DrawnSide& side) {
    for (size_t r = 0; r < quantization_rules.size(); ++r) {
      const QuantizationRule& rule = quantization_rules[r];
      if (!side.has(rule) || quantization.*rule.parameter) continue;
      ParameterOperand operand{rule.element, {}, side.ranges[r]};
      if (quantization.is_per_axis()) {
        const int axis = quantization.axis;
        operand.axes = {axis_like(random_, type.shape[static_cast<size_t>(axis)], shape[axis])};
      } else if (random_.percent(30)) {
        operand.axes = {axis_like(random_, Dim(1), 1)};
      }
      const bool has_room = may_add_inputs && program_.inputs.size() < max_inputs;
      if (has_room && random_.percent(85)) {
        operation.operands[first + r] = parameter_input(operand);
        x += x >= operation.operands[first + r];
      } else {
        constants.emplace_back(first + r, std::move(operand));
      }
    }
  };
  if (type.quantization) take(source_parameter(0), *type.quantization, drawn.from);
  if (operation.quantization) take(destination_parameter(0), *operation.quantization, drawn.to);
  for (const auto& [index, operand] : constants) {
    operation.operands[index] = parameter_constant(operand);
    if (operation.operands[index] == no_operand) return false;
  }
  operation.operands[0] = x;
  while (operation.operands.back() == no_operand && random_.percent(80)) {
    operation.operands.pop_back();
  }
  return add(std::move(operation), max_requantized);
}

void OperationDrawer::draw_requantization(const DrawnRequantization& drawn) {
  space_ = drawn.shape;
  InputSpec input;
  input.element = drawn.from.element();
  Dims open;  // extents that may be written in any way
  const int listed = listed_axis(drawn);
  for (int axis = 0; axis < drawn.shape.rank(); ++axis) {
    if (axis != listed) open.push_back(drawn.shape[axis]);
  }
  input.axes = writer_.write(program_, open);
  if (listed >= 0) {
    input.axes.insert(input.axes.begin() + listed, {AxisSpec::Kind::fixed, drawn.shape[listed], 0});
  }
  const int64_t slices = drawn.from.axis < 0 ? 1 : drawn.shape[drawn.from.axis];
  input.quantization = draw_quantization(random_, drawn.from, slices);
  if (!drawn.from.format && drawn.to.format && random_.percent(60)) {
    input.data = half_steps(drawn.to);
  }
  requantize(add_input(std::move(input)), drawn, true);
}

void OperationDrawer::draw_requantization_of(ElementType container) {
  DrawnRequantization drawn;
  do {
    drawn = draw_requantization_like(random_, nullptr, nullptr);
  } while (drawn.from.element() != container);
  draw_requantization(drawn);
}

/// A small one of any quantized type.
bool OperationDrawer::draw_quantized_constant() {
  DrawnSide side = draw_requantization_like(random_, nullptr, nullptr).from;
  if (!side.format) return false;
  const Dims shape =
      draw_shape(random_, static_cast<int>(random_.below(3)), random_.between(1, 60));
  side.axis = Quantization::per_tensor;
  if (is_asymmetric(side.format) && !shape.empty() && random_.percent(50)) {
    side.axis = static_cast<int>(random_.below(static_cast<size_t>(shape.rank())));
  }
  OperationSpec constant{.op = OpKind::constant, .element = side.element()};
  for (int64_t extent : shape) constant.target.push_back({AxisSpec::Kind::fixed, extent, 0});
  constant.patterns = samples::random_patterns(
      constant.element, static_cast<size_t>(count_of(shape)), random_.next());
  constant.quantization = draw_quantization(random_, side, side.axis < 0 ? 1 : shape[side.axis]);
  return add(std::move(constant));
}

/// A value that a requantization takes: a constant made for it, or one that is there.
std::optional<size_t> OperationDrawer::requantize_source() {
  if (random_.percent(12) && draw_quantized_constant()) return last();
  std::vector<size_t> quantized;
  for (size_t value = 0; value < program_.value_count(); ++value) {
    if (program_.is_value(value) && program_.is_quantized(value)) quantized.push_back(value);
  }
  std::vector<size_t> floats = values_of(ElementType::f32);
  const std::vector<size_t> others = values_of(OperandClass::any);
  if (floats.empty() && !others.empty() && random_.percent(30)) {
    const size_t made = converted(pick_value(others), ElementType::f32);
    if (program_.element_of(made) == ElementType::f32) floats.push_back(made);
  }
  if (quantized.empty() && floats.empty()) return {};
  const bool is_quantized = floats.empty() || (!quantized.empty() && random_.percent(65));
  return pick_value(is_quantized ? quantized : floats);
}

bool OperationDrawer::draw_requantize(bool may_add_inputs) {
  const std::optional<size_t> source = requantize_source();
  if (!source) return false;
  const size_t x = *source;
  const TensorType& type = program_.values[x].type;

  DrawnRequantization drawn = draw_requantization_like(random_, nullptr, nullptr);
  drawn.shape = program_.shape_of(x);
  drawn.from.format.reset();
  drawn.from.axis = drawn.to.axis = Quantization::per_tensor;
  if (type.quantization) {
    drawn.from.format = type.quantization->format;
    drawn.from.axis = type.quantization->axis;
  }
  draw_ranges(random_, drawn.from, drawn.to);
  if (is_asymmetric(drawn.to.format) && !drawn.shape.empty() && random_.percent(50)) {
    const int rank = drawn.shape.rank();
    drawn.to.axis = drawn.from.axis >= 0
                        ? drawn.from.axis
                        : static_cast<int>(random_.below(static_cast<size_t>(rank)));
    const Dim& dim = type.shape[static_cast<size_t>(drawn.to.axis)];
    if (!dim.is_fixed()) drawn.to.is_open.fill(true);
  }
  return requantize(x, drawn, may_add_inputs);
}

void draw_requantizations(Random& random, Program& program) {
  OperationDrawer drawer(random, program);
  drawer.draw_requantization(draw_requantization_like(random, nullptr, nullptr));
  while (random.percent(35)) drawer.draw_requantize(true);
  if (random.percent(30)) drawer.draw_many(1 + random.below(4));
  drawer.draw_results();
  program.excess_precision = random.percent(12);
}

}  // namespace castor::fuzz
