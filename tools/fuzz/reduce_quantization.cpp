// SPDX-License-Identifier: Apache-2.0
// Steps to plainer quantized types, and types that fit shapes again.
#include <algorithm>

#include "ir/verify/requantize.hpp"
#include "tools/fuzz/candidates.hpp"
#include "tools/fuzz/layout.hpp"

namespace castor::fuzz {

namespace {

/// A change of every quantization of a program, of which `change` says whether there was any.
template <class Change>
bool change_quantizations(Program& program, Change change) {
  bool changes = false;
  const auto replace = [&](QuantizationPtr& quantization) {
    if (!quantization) return;
    Quantization copy = *quantization;
    change(copy);
    if (copy == *quantization) return;
    quantization = std::make_shared<const Quantization>(std::move(copy));
    changes = true;
  };
  for (InputSpec& input : program.inputs) replace(input.quantization);
  for (OperationSpec& operation : program.operations) replace(operation.quantization);
  return changes;
}

/// Gives every list as many entries as there are slices.
void resize(Quantization& quantization, int64_t slices) {
  for (const QuantizationRule& rule : quantization_rules) {
    QuantizationParameter& parameter = quantization.*rule.parameter;
    if (!parameter) continue;
    const int32_t more = parameter->empty() ? std::max(0, rule.min) : parameter->back();
    parameter->resize(static_cast<size_t>(slices), more);
  }
}

void make_per_tensor(Quantization& quantization) {
  if (!quantization.is_per_axis()) return;
  quantization.axis = Quantization::per_tensor;
  resize(quantization, 1);
}

/// Slices as the shape has them; without the axis, none.
void fit(QuantizationPtr& quantization, const Dims& shape) {
  if (!quantization || !quantization->is_per_axis()) return;
  Quantization copy = *quantization;
  copy.axis < shape.rank() ? resize(copy, shape[copy.axis]) : make_per_tensor(copy);
  quantization = std::make_shared<const Quantization>(std::move(copy));
}

/// The extents of inputs, of constants and of what is requantized from them; of others nothing is
/// known before types are inferred.
std::optional<Dims> known_shape(const Program& program, size_t value) {
  while (value >= program.first_operation()) {
    const OperationSpec& operation = program.operations[program.operation_of(value)];
    if (operation.op == OpKind::constant) return program.extents_of(operation.target);
    if (operation.op != OpKind::requantize) return {};
    value = operation.operands[0];
  }
  return program.extents_of(program.inputs[value].axes);
}

const QuantizationPtr& quantization_of(const Program& program, size_t value) {
  return value < program.first_operation()
             ? program.inputs[value].quantization
             : program.operations[program.operation_of(value)].quantization;
}

/// One entry for each slice of an input or a constant that is a parameter.
void fit_parameter(Program& program, size_t value, const Quantization& quantization,
                   const Dims& shape) {
  OperationSpec* constant = value < program.first_operation()
                                ? nullptr
                                : &program.operations[program.operation_of(value)];
  std::vector<AxisSpec>& axes = constant ? constant->target : program.inputs[value].axes;
  const int64_t slices = quantization.is_per_axis() ? shape[quantization.axis] : 1;
  const Dims found = program.extents_of(axes);
  const bool fits = (found.empty() && !quantization.is_per_axis()) || found == Dims{slices};
  if (fits) return;
  axes.clear();
  if (quantization.is_per_axis()) axes.push_back({AxisSpec::Kind::fixed, slices, 0});
  if (constant) constant->patterns.resize(static_cast<size_t>(slices), 1);
}

class QuantizationReductions : Candidates {
 public:
  explicit QuantizationReductions(const Program& program) : Candidates(program) {}

  std::vector<Program> take() {
    add_changed(make_per_tensor);
    for (const QuantizationRule& rule : quantization_rules) {
      for (int32_t plain : {std::max(0, rule.min), 1}) {
        add_changed([&](Quantization& quantization) { fill(quantization, rule, plain); });
      }
      add_changed([&](Quantization& quantization) {
        const QuantizationParameter& entries = quantization.*rule.parameter;
        if (entries && !entries->empty()) fill(quantization, rule, entries->front());
      });
    }
    return std::move(all_);
  }

 private:
  static void fill(Quantization& quantization, const QuantizationRule& rule, int32_t number) {
    QuantizationParameter& parameter = quantization.*rule.parameter;
    if (parameter) std::ranges::fill(*parameter, number);
  }

  template <class Change>
  void add_changed(Change change) {
    Program copy = program_;
    if (change_quantizations(copy, change)) add_mended(std::move(copy), program_);
  }
};

}  // namespace

void mend_quantizations(Program& program) {
  for (InputSpec& input : program.inputs) {
    fit(input.quantization, program.extents_of(input.axes));
  }
  for (OperationSpec& operation : program.operations) {
    if (operation.op == OpKind::constant) {
      fit(operation.quantization, program.extents_of(operation.target));
    }
    if (operation.op != OpKind::requantize) continue;
    const size_t x = operation.operands[0];
    const std::optional<Dims> shape = known_shape(program, x);
    if (!shape) continue;
    fit(operation.quantization, *shape);
    for (size_t i = 1; i < operation.operands.size(); ++i) {
      const QuantizationPtr& side =
          i < destination_parameter(0) ? quantization_of(program, x) : operation.quantization;
      const size_t operand = operation.operands[i];
      if (side && operand != no_operand) fit_parameter(program, operand, *side, *shape);
    }
  }
}

std::vector<Program> plainer_quantizations(const Program& program) {
  return QuantizationReductions(program).take();
}

}  // namespace castor::fuzz
