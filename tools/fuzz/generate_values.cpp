// SPDX-License-Identifier: Apache-2.0
// Drawing functions of all ops: inputs, constants, values to read, results.
#include <algorithm>

#include "tools/fuzz/generate.hpp"
#include "tools/fuzz/generate_operations.hpp"
#include "tools/fuzz/image.hpp"
#include "tools/testing/samples.hpp"

namespace castor::fuzz {

namespace {

/// f32 of either sign with magnitudes from 2^-8 to 2^25: scales and shifts after which sums of
/// bytes are on either side of what integers hold.
std::vector<uint64_t> moderate_numbers(Random& random, size_t count) {
  constexpr uint64_t min_exponent = 127 - 8;
  const uint64_t exponent = min_exponent + random.below(32);
  std::vector<uint64_t> numbers;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t sign = random.below(2) << 31;
    numbers.push_back(sign | (exponent + random.below(2)) << 23 | (random.next() & 0x7fffff));
  }
  return numbers;
}

}  // namespace

OperationDrawer::OperationDrawer(Random& random, Program& program)
    : random_(random), program_(program), writer_(random), space_(draw_space(random)) {
  const size_t types = 1 + random_.below(4);
  for (size_t i = 0; i < types; ++i) palette_.push_back(draw_element(random_));
}

size_t OperationDrawer::add_input(ElementType type) {
  const bool is_alone = random_.percent(7);  // a shape that has nothing to do with the others
  return add_input(type, is_alone ? draw_space(random_) : draw_operand_shape(random_, space_));
}

size_t OperationDrawer::add_input(ElementType type, const Dims& shape) {
  InputSpec input;
  input.element = type;
  input.axes = writer_.write(program_, shape);
  return add_input(std::move(input));
}

size_t OperationDrawer::add_input(InputSpec input) {
  const size_t added = program_.inputs.size();
  fuzz::add_input(program_, std::move(input));
  is_read_.insert(is_read_.begin() + static_cast<ptrdiff_t>(added), false);
  return added;
}

void OperationDrawer::draw_inputs() {
  const size_t count = 1 + random_.below(random_.percent(70) ? 3 : 6);
  const bool are_alike = random_.percent(50);
  for (size_t i = 0; i < count; ++i) {
    add_input(are_alike ? palette_.front() : random_.pick(palette_));
  }
  if (random_.percent(8)) {  // a table for codes of 8 or 4 bits
    add_input(random_.pick(palette_), {random_.percent(50) ? 256 : 16});
  }
}

bool OperationDrawer::add(OperationSpec operation, int64_t max) {
  const std::vector<size_t> operands = operation.operands;
  if (!add_operation(program_, std::move(operation), std::min(max, work_left_))) {
    return false;
  }
  for (size_t operand : operands) {
    if (operand != no_operand) is_read_[operand] = true;
  }
  is_read_.resize(program_.value_count(), false);
  work_left_ -= count_of(program_.shape_of(last()));
  return true;
}

size_t OperationDrawer::last() const {
  size_t value = program_.value_count() - 1;
  while (!program_.is_value(value)) --value;
  return value;
}

std::vector<size_t> OperationDrawer::values_of(OperandClass types) const {
  std::vector<size_t> values;
  for (size_t value = 0; value < program_.value_count(); ++value) {
    if (!program_.is_value(value) || program_.is_quantized(value)) continue;
    if (admits(types, program_.element_of(value))) values.push_back(value);
  }
  return values;
}

std::vector<size_t> OperationDrawer::values_of(ElementType type) const {
  std::vector<size_t> values;
  for (size_t value = 0; value < program_.value_count(); ++value) {
    if (!program_.is_value(value) || program_.is_quantized(value)) continue;
    if (program_.element_of(value) == type) values.push_back(value);
  }
  return values;
}

/// The latest, one that nothing reads yet, or any.
size_t OperationDrawer::pick_value(const std::vector<size_t>& values) {
  const size_t kind = random_.below(100);
  if (kind < 35) return values.back();
  if (kind < 60) return random_.pick(values);
  std::vector<size_t> unread;
  std::ranges::copy_if(values, std::back_inserter(unread),
                       [&](size_t value) { return !is_read_[value]; });
  return random_.pick(unread.empty() ? values : unread);
}

ElementType OperationDrawer::palette_type(OperandClass types) {
  const ElementType type = random_.pick(palette_);
  return admits(types, type) ? type : draw_element(random_, types);
}

/// The value itself where it has the type, else converted.
size_t OperationDrawer::converted(size_t value, ElementType type) {
  if (program_.element_of(value) == type) return value;
  const ConvertOptions options = draw_options(random_, program_.element_of(value), type);
  return add(conversion(value, type, options)) ? last() : value;
}

/// A value of the class; at times one is converted to it, else there may be none.
std::optional<size_t> OperationDrawer::operand_of(OperandClass types) {
  const std::vector<size_t> values = values_of(types);
  if (!values.empty()) return pick_value(values);
  const std::vector<size_t> others = values_of(OperandClass::any);
  if (others.empty() || !random_.percent(30)) return {};
  return converted(pick_value(others), palette_type(types));
}

bool OperationDrawer::add_constant(ElementType type, const Dims& shape) {
  OperationSpec constant{.op = OpKind::constant, .element = type};
  for (int64_t extent : shape) constant.target.push_back({AxisSpec::Kind::fixed, extent, 0});
  const auto count = static_cast<size_t>(count_of(shape));
  if (type == ElementType::f32 && random_.percent(40)) {
    constant.patterns = moderate_numbers(random_, count);
  } else {
    constant.patterns = random_.percent(50) ? special_patterns(type, count, random_.next())
                                            : samples::random_patterns(type, count, random_.next());
  }
  return add(std::move(constant));
}

bool OperationDrawer::draw_constant() {
  constexpr int64_t max_literals = 64;
  const Dims shape = draw_operand_shape(random_, space_);
  const bool is_small = random_.percent(60) && count_of(shape) <= max_literals;
  return add_constant(random_.pick(palette_), is_small ? shape : Dims{});
}

void OperationDrawer::draw_results() {
  const auto add_result = [&](size_t value) {
    ResultSpec result;
    result.value = value;
    result.declares_unknowns = random_.percent(10);
    program_.results.push_back(result);
  };
  add_result(last());
  const size_t unread_percent = random_.below(101);
  for (size_t value = 0; value < program_.value_count(); ++value) {
    if (program_.results.size() == max_results) return;
    if (!program_.is_value(value) || value == last()) continue;
    const bool is_wanted = is_read_[value] ? random_.percent(4) : random_.percent(unread_percent);
    if (is_wanted && value >= program_.first_operation()) add_result(value);
  }
}

}  // namespace castor::fuzz
