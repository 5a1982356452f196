// SPDX-License-Identifier: Apache-2.0
#include "ir/rewrite/fold_constants.hpp"

#include <algorithm>

#include "ir/interpreter/interpreter.hpp"
#include "ir/rewrite/rebuild.hpp"
#include "ir/types/excess_precision.hpp"

namespace castor {

namespace {

constexpr int64_t max_elements = 64 << 10;
/// The bound for one function: the interpreter takes some ten nanoseconds for each. A function with
/// more is left as it is: each time that it is canonicalised would compute some more.
constexpr int64_t max_elements_of_function = 4 << 20;

Dims extents_of(const TensorType& type) {
  Dims extents;
  for (const Dim& dim : type.shape) extents.push_back(dim.extent);
  return extents;
}

/// The number of elements where it is known and small, else none.
std::optional<int64_t> small_count(const TensorType& type) {
  if (!is_fixed(type.shape) || type.quantization) return std::nullopt;
  const auto count = element_count(extents_of(type));
  return count && *count <= max_elements ? count : std::nullopt;
}

bool may_fold(const Operation& operation) {
  return info(operation.op).family == OpFamily::elementwise || operation.op == OpKind::reshape;
}

/// The operations that follow from constants, and the values of theirs that others read.
class Folding {
 public:
  explicit Folding(const Function& function)
      : function_(function),
        is_constant_(function.values.size()),
        is_folded_(function.operations.size()),
        is_operand_(function.values.size()),
        is_wanted_(function.values.size()) {
    for (size_t i = 0; i < function.operations.size(); ++i) {
      const Operation& operation = function.operations[i];
      is_folded_[i] = folds(operation);
      for (const ValueId operand : operation.operands) {
        if (is_folded_[i]) is_operand_[operand] = true;
      }
      if (!is_folded_[i] && operation.op != OpKind::constant) continue;
      for (const ValueId result : operation.results) is_constant_[result] = true;
    }
    find_wanted();
  }

  bool exceeds_budget() const { return elements_ > max_elements_of_function; }
  bool is_folded(size_t operation) const { return is_folded_[operation]; }
  bool is_wanted(ValueId value) const { return is_wanted_[value]; }
  std::vector<ValueId> wanted() const {
    std::vector<ValueId> values;
    for (ValueId id = 0; id < is_wanted_.size(); ++id) {
      if (is_wanted_[id]) values.push_back(id);
    }
    return values;
  }

  /// What computes the wanted values.
  Result<FunctionPtr> function_of_constants() const {
    FunctionBuilder builder(function_.name);
    detail::CopiedIds ids(function_.values.size(), no_value);
    for (size_t i = 0; i < function_.operations.size(); ++i) {
      const Operation& operation = function_.operations[i];
      const bool is_operand = operation.op == OpKind::constant && is_operand_[operation.results[0]];
      if (is_folded_[i] || is_operand) detail::append_copy(builder, function_, operation, ids);
    }
    for (const ValueId value : wanted()) builder.result(ids[value]);
    return builder.finish();
  }

 private:
  /// Also counts the elements of what folds. Outer products stay: kernels read their operands
  /// faster than a tensor of all products.
  bool folds(const Operation& operation) {
    if (!may_fold(operation)) return false;
    int64_t largest = 0;
    for (const ValueId id : operation.operands) {
      const auto count = id == no_value ? std::nullopt : small_count(function_.type_of(id));
      if (!count || !is_constant_[id]) return false;
      largest = std::max(largest, *count);
    }
    for (const ValueId id : operation.results) {
      const auto count = small_count(function_.type_of(id));
      if (!count || *count > largest) return false;
      elements_ += *count;
    }
    return true;
  }

  void find_wanted() {
    std::vector<bool> is_computed(function_.values.size());
    for (size_t i = 0; i < function_.operations.size(); ++i) {
      const Operation& operation = function_.operations[i];
      for (const ValueId id : operation.operands) {
        if (id != no_value && is_computed[id] && !is_folded_[i]) is_wanted_[id] = true;
      }
      for (const ValueId id : operation.results) is_computed[id] = is_folded_[i];
    }
    for (const ValueId id : function_.results) {
      if (is_computed[id]) is_wanted_[id] = true;
    }
  }

  const Function& function_;
  int64_t elements_ = 0;  ///< in results of folded operations
  std::vector<bool> is_constant_;
  std::vector<bool> is_folded_;
  std::vector<bool> is_operand_;  ///< whether what is folded reads it
  std::vector<bool> is_wanted_;
};

/// The data of a function without parameters, one for each result.
std::optional<std::vector<ConstantData>> results_of(const Function& function) {
  std::vector<ConstantData> data(function.results.size());
  std::vector<View> views;
  for (size_t i = 0; i < data.size(); ++i) {
    const TensorType& type = function.type_of(function.results[i]);
    const Dims extents = extents_of(type);
    data[i].bytes.resize(static_cast<size_t>(*byte_size(type.element, *element_count(extents))));
    views.emplace_back(data[i].bytes.data(), type.element, extents, data[i].bytes.size());
  }
  if (!interpret(function, {}, views)) return std::nullopt;
  return data;
}

/// The function with constants instead of what was folded.
Result<FunctionPtr> rebuilt(const Function& function, const Folding& folding,
                            std::vector<ConstantData> data) {
  FunctionBuilder builder(function.name);
  detail::CopiedIds ids = detail::append_parameters(builder, function);
  const std::vector<ValueId> wanted = folding.wanted();
  for (size_t i = 0; i < function.operations.size(); ++i) {
    const Operation& operation = function.operations[i];
    if (!folding.is_folded(i)) {
      detail::append_copy(builder, function, operation, ids);
      continue;
    }
    for (const ValueId id : operation.results) {
      if (!folding.is_wanted(id)) continue;
      const auto at = std::ranges::lower_bound(wanted, id) - wanted.begin();
      const TensorType& type = function.type_of(id);
      Operation constant{
          .op = OpKind::constant,
          .data = std::make_shared<const ConstantData>(std::move(data[static_cast<size_t>(at)])),
          .where = operation.where};
      const std::string name = function.values[id].name;
      ids[id] = builder.append(std::move(constant), {type.element, type.shape}, {&name, 1});
    }
  }
  return detail::finish_copy(builder, function, ids);
}

}  // namespace

FunctionPtr fold_constants(const FunctionPtr& function) {
  if (allows_excess_precision(*function)) return function;
  const Folding folding(*function);
  if (folding.wanted().empty() || folding.exceeds_budget()) return function;
  const Result<FunctionPtr> constants = folding.function_of_constants();
  if (!constants) return function;
  auto data = results_of(**constants);
  if (!data) return function;
  Result<FunctionPtr> result = rebuilt(*function, folding, std::move(*data));
  return result ? *result : function;  // the rules of the IR hold for what was verified before
}

}  // namespace castor
