// SPDX-License-Identifier: Apache-2.0
// The interpreter: runs a function op by op over whole tensors.
#include "ir/interpreter.hpp"

#include <fmt/format.h>

#include <new>
#include <stdexcept>
#include <vector>

#include "ir/infer.hpp"
#include "ir/interpreter/evaluate.hpp"
#include "ir/interpreter/tensor.hpp"

namespace castor {

namespace {

/// Runs one function once. Every member function but write_results may throw std::bad_alloc or
/// std::length_error.
class Interpreter {
 public:
  Interpreter(const Function& function, const BoundShapes& shapes)
      : function_(function),
        shapes_(shapes),
        values_(function.values.size()),
        uses_left_(function.values.size(), 0) {
    for (const Operation& operation : function.operations) count_uses(operation.operands);
    count_uses(function.results);  // never used up: results stay until they are written
  }

  void read_parameters(std::span<const ConstView> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ValueId id = function_.parameters[i];
      if (uses_left_[id] > 0) values_[id] = read_tensor(inputs[i]);
    }
  }

  void run(const Operation& operation) {
    std::vector<const Tensor*> operands;
    for (ValueId id : operation.operands) {
      operands.push_back(id == no_value ? nullptr : &values_[id]);
    }
    std::vector<Tensor> results;
    for (ValueId id : operation.results) {
      results.push_back({function_.type_of(id).element, shapes_.values[id], {}});
    }
    evaluator_of(operation.op)(operation, operands, results);
    for (size_t i = 0; i < results.size(); ++i) {
      values_[operation.results[i]] = std::move(results[i]);
    }
    free_dead(operation);
  }

  void write_results(std::span<const View> outputs) const {
    for (size_t i = 0; i < outputs.size(); ++i) {
      write_tensor(values_[function_.results[i]], outputs[i]);
    }
  }

 private:
  void count_uses(std::span<const ValueId> ids) {
    for (ValueId id : ids) {
      if (id != no_value) ++uses_left_[id];
    }
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
  std::vector<Tensor> values_;       ///< by ValueId
  std::vector<uint32_t> uses_left_;  ///< by ValueId
};

Status interpret_or_throw(const Function& function, std::span<const ConstView> inputs,
                          std::span<const View> outputs) {
  std::vector<Dims> extents;
  for (const ConstView& input : inputs) extents.push_back(input.shape);
  const Result<BoundShapes> shapes = bind_shapes(function, extents);
  if (!shapes) return shapes.error();

  Interpreter interpreter(function, *shapes);
  interpreter.read_parameters(inputs);
  for (const Operation& operation : function.operations) interpreter.run(operation);
  interpreter.write_results(outputs);  // last: an output may be an input's memory
  return {};
}

Error out_of_memory(const Function& function) {
  return {ErrorCode::out_of_memory,
          fmt::format("interpret: memory was refused for the values of @{}; it needs 8 bytes for "
                      "each element of each value that is alive",
                      function.name)};
}

}  // namespace

Status interpret(const Function& function, std::span<const ConstView> inputs,
                 std::span<const View> outputs) {
  try {
    return interpret_or_throw(function, inputs, outputs);
  } catch (const std::bad_alloc&) {
    return out_of_memory(function);
  } catch (const std::length_error&) {  // more elements than a vector can ever hold
    return out_of_memory(function);
  }
}

}  // namespace castor
