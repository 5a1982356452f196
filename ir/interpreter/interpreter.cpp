// SPDX-License-Identifier: Apache-2.0
// The interpreter: runs a function op by op over whole tensors.
#include "ir/interpreter/interpreter.hpp"

#include <vector>

#include "ir/composition/expand.hpp"
#include "ir/interpreter/evaluate.hpp"
#include "ir/interpreter/tensor.hpp"
#include "ir/numerics/scalar.hpp"
#include "ir/support/guarded.hpp"
#include "ir/types/excess_precision.hpp"
#include "ir/verify/infer.hpp"

namespace castor {

namespace {

/// Converts every element with default options, in place.
void convert_to(ElementType type, Tensor& tensor) {
  for (uint64_t& bits : tensor.elements) {
    bits = numerics::convert(bits, tensor.element, type, {});
  }
  tensor.element = type;
}

/// Runs one function once. Every member function but write_results may throw std::bad_alloc,
/// std::length_error or Refusal.
class Interpreter {
 public:
  Interpreter(const Function& function, const BoundShapes& shapes)
      : function_(function),
        shapes_(shapes),
        is_excess_allowed_(allows_excess_precision(function)),
        carried_(carried_types(function)),
        values_(function.values.size()),
        uses_left_(function.values.size(), 0) {
    for (const Operation& operation : function.operations) count_uses(operation.operands);
    count_uses(function.results);  // never used up: results stay until they are written
  }

  void read_parameters(std::span<const ConstView> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ValueId id = function_.parameters[i];
      if (uses_left_[id] == 0) continue;
      values_[id] = read_tensor(inputs[i]);
      values_[id].quantization = function_.type_of(id).quantization;
    }
  }

  void run(const Operation& operation) {
    std::vector<Tensor> converted(operation.operands.size());
    std::vector<const Tensor*> operands;
    for (size_t i = 0; i < operation.operands.size(); ++i) {
      operands.push_back(operand(operation, i, converted[i]));
    }
    std::vector<Tensor> results;
    for (ValueId id : operation.results) {
      results.push_back({carried_[id], shapes_.values[id], {}, function_.type_of(id).quantization});
    }
    evaluator_of(operation.op)(operation, operands, results);
    for (size_t i = 0; i < results.size(); ++i) {
      values_[operation.results[i]] = std::move(results[i]);
    }
    free_dead(operation);
  }

  /// Rounds the results that were carried in f32 to their own types. The last step: no operation
  /// may follow.
  void write_results(std::span<const View> outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const ValueId id = function_.results[i];
      if (values_[id].element != type_of(id)) convert_to(type_of(id), values_[id]);
      write_tensor(values_[id], outputs[i]);
    }
  }

 private:
  void count_uses(std::span<const ValueId> ids) {
    for (ValueId id : ids) {
      if (id != no_value) ++uses_left_[id];
    }
  }

  ElementType type_of(ValueId id) const { return function_.type_of(id).element; }

  /// The type in which an operation takes an operand (ir/types/excess_precision.hpp).
  ElementType type_taken(OpKind op, ValueId id) const {
    if (is_excess_allowed_ && keeps_excess_precision(op) && may_be_carried_wide(type_of(id))) {
      return ElementType::f32;
    }
    return info(op).family == OpFamily::elementwise ? carried_[id] : type_of(id);
  }

  /// An operand in the type in which the operation takes it, or null if it is absent; `converted`
  /// holds it where that is not the type that it is carried in.
  const Tensor* operand(const Operation& operation, size_t index, Tensor& converted) const {
    const ValueId id = operation.operands[index];
    if (id == no_value) return nullptr;
    const ElementType taken = type_taken(operation.op, id);
    if (taken == carried_[id]) return &values_[id];
    converted = values_[id];
    convert_to(taken, converted);
    return &converted;
  }

  /// Frees the operands that no later op and no result reads, and results that nobody reads.
  void free_dead(const Operation& operation) {
    for (ValueId id : operation.operands) {
      if (id != no_value && --uses_left_[id] == 0) values_[id] = {};
    }
    for (ValueId id : operation.results) {
      if (uses_left_[id] == 0) values_[id] = {};
    }
  }

  const Function& function_;
  const BoundShapes& shapes_;
  const bool is_excess_allowed_;
  const std::vector<ElementType> carried_;  ///< by ValueId, the type of its elements
  std::vector<Tensor> values_;              ///< by ValueId
  std::vector<uint32_t> uses_left_;         ///< by ValueId
};

Status interpret_or_throw(const Function& function, std::span<const ConstView> inputs,
                          std::span<const View> outputs) {
  std::vector<Dims> extents;
  for (const ConstView& input : inputs) extents.push_back(input.shape);
  const Result<BoundShapes> shapes = bind_shapes(function, extents);
  if (!shapes) return shapes.error();

  if (has_compositions(function)) {  // the function itself said what does not fit
    const Result<FunctionPtr> expanded = expand_compositions(function);
    return expanded ? interpret_or_throw(**expanded, inputs, outputs) : Status(expanded.error());
  }
  Interpreter interpreter(function, *shapes);
  interpreter.read_parameters(inputs);
  for (const Operation& operation : function.operations) interpreter.run(operation);
  interpreter.write_results(outputs);  // last: an output may be an input's memory
  return {};
}

}  // namespace

Status interpret(const Function& function, std::span<const ConstView> inputs,
                 std::span<const View> outputs) {
  return guarded([&]() -> Status {
    try {
      return interpret_or_throw(function, inputs, outputs);
    } catch (const Refusal& refusal) {
      return refusal.error;
    }
  });
}

}  // namespace castor
