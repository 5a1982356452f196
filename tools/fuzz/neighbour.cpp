// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/neighbour.hpp"

#include <algorithm>

#include "ir/op.hpp"
#include "tools/fuzz/random.hpp"
#include "tools/fuzz/rewrite.hpp"

namespace castor::fuzz {

namespace {

constexpr int max_attempts = 12;

/// Changes one thing in a program; whether types still fit is found out afterwards.
class OneChange {
 public:
  OneChange(Random& random, Program& program) : random_(random), program_(program) {}

  /// False where there is nothing to change.
  bool apply() {
    constexpr std::array changes = {&OneChange::change_attribute, &OneChange::change_attribute,
                                    &OneChange::change_element,   &OneChange::change_constant,
                                    &OneChange::change_extent,    &OneChange::change_operation,
                                    &OneChange::swap_operands,    &OneChange::change_option};
    return (this->*random_.pick(changes))();
  }

 private:
  bool change_attribute() {
    OperationSpec* operation =
        pick_operation([](const OperationSpec& each) { return !each.attributes.empty(); });
    if (operation == nullptr) return false;
    Attribute& attribute = operation->attributes[random_.below(operation->attributes.size())];
    for (const AttributeRule& rule : info(operation->op).attributes) {
      if (rule.name == attribute.name) return change_value(attribute.value, rule);
    }
    return false;
  }

  bool change_value(AttributeValue& attribute, const AttributeRule& rule) {
    auto& value = attribute.value;
    if (auto* number = std::get_if<int64_t>(&value)) {
      *number += random_.percent(50) ? 1 : -1;
    } else if (auto* flag = std::get_if<bool>(&value)) {
      *flag = !*flag;
    } else if (auto* list = std::get_if<AttributeValue::List>(&value); list && !list->empty()) {
      return change_value((*list)[random_.below(list->size())], rule);
    } else if (auto* word = std::get_if<Identifier>(&value); word && !rule.choices.empty()) {
      word->name = std::string(rule.choices[random_.below(rule.choices.size())]);
    } else {
      return false;
    }
    return true;
  }

  /// To another type of the same width.
  bool change_element() {
    if (program_.inputs.empty()) return false;
    InputSpec& input = program_.inputs[random_.below(program_.inputs.size())];
    const auto other = static_cast<ElementType>(random_.below(element_type_count));
    if (input.quantization || other == input.element) return false;
    if (!are_stored_alike(other, input.element)) return false;
    input.element = other;
    return true;
  }

  bool change_constant() {
    OperationSpec* constant = pick_operation([](const OperationSpec& each) {
      return each.op == OpKind::constant && !each.patterns.empty() && !each.quantization;
    });
    if (constant == nullptr) return false;
    constant->patterns[random_.below(constant->patterns.size())] ^= 1;
    return true;
  }

  bool change_extent() {
    if (random_.percent(50)) {
      int64_t& size = program_.named_sizes[random_.below(program_.named_sizes.size())];
      ++size;
      return true;
    }
    if (program_.inputs.empty()) return false;
    InputSpec& input = program_.inputs[random_.below(program_.inputs.size())];
    if (input.axes.empty() || input.quantization) return false;
    AxisSpec& axis = input.axes[random_.below(input.axes.size())];
    if (axis.kind == AxisSpec::Kind::named) return false;
    ++axis.extent;
    return true;
  }

  bool change_operation() {
    OperationSpec* operation = pick_operation(
        [](const OperationSpec& each) { return info(each.op).family == OpFamily::elementwise; });
    if (operation == nullptr) return false;
    const OpInfo& old = info(operation->op);
    const OpInfo& other = op_table()[random_.below(op_count)];
    if (other.op == old.op || other.family != old.family) return false;
    if (other.operands != old.operands || other.results != old.results) return false;
    if (other.suffix != old.suffix) return false;
    operation->op = other.op;
    operation->attributes.clear();
    return true;
  }

  bool swap_operands() {
    OperationSpec* operation = pick_operation([](const OperationSpec& each) {
      return each.operands.size() == 2 && each.operands[0] != each.operands[1] &&
             each.operands[1] != no_operand;
    });
    if (operation == nullptr) return false;
    std::swap(operation->operands[0], operation->operands[1]);
    return true;
  }

  bool change_option() {
    program_.excess_precision = !program_.excess_precision;
    return true;
  }

  /// One of the operations that are meant, or null.
  template <class Meant>
  OperationSpec* pick_operation(Meant is_meant) {
    std::vector<OperationSpec*> all;
    for (OperationSpec& each : program_.operations) {
      if (is_meant(each)) all.push_back(&each);
    }
    return all.empty() ? nullptr : all[random_.below(all.size())];
  }

  Random& random_;
  Program& program_;
};

}  // namespace

std::optional<Program> neighbour_of(const Program& program, uint64_t seed) {
  Random random(seed);
  for (int attempt = 0; attempt < max_attempts; ++attempt) {
    Program changed = program;
    if (!OneChange(random, changed).apply() || !mend(changed, program)) continue;
    if (build_function(changed)) return changed;
  }
  return {};
}

}  // namespace castor::fuzz
