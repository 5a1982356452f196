// SPDX-License-Identifier: Apache-2.0
// From a function to nests: which values share an iteration space, and their lanes.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>

#include "ir/convert_options.hpp"
#include "jit/float_environment.hpp"
#include "jit/lane/optimize.hpp"
#include "jit/lower/convert.hpp"
#include "jit/lower/small_values.hpp"
#include "jit/nest.hpp"

namespace castor::jit {

namespace {

/// For each value, a representative of the group that shares its iteration space: an elementwise
/// operation puts its operands and results into one.
std::vector<ValueId> iteration_groups(const Function& function) {
  std::vector<ValueId> group(function.values.size());
  std::iota(group.begin(), group.end(), ValueId{0});
  for (const Operation& operation : function.operations) {
    for (ValueId operand : operation.operands) {
      // Operands are defined before results, so their groups are settled.
      for (ValueId result : operation.results) group[result] = group[operand];
    }
  }
  return group;
}

/// Lowers the operations of one group on demand, from its results back to its sources.
class NestLowering {
 public:
  NestLowering(const Function& function, const Target& target, Nest& nest)
      : function_(function),
        nest_(nest),
        builder_(target, nest.program),
        lanes_(function.values.size()) {
    defining_.resize(function.values.size(), nullptr);
    for (const Operation& operation : function.operations) {
      for (ValueId result : operation.results) defining_[result] = &operation;
    }
  }

  void add_output(uint32_t index) {
    const ValueId value = function_.results[index];
    lower_up_to(value);
    const int sink = static_cast<int>(nest_.outputs.size());
    nest_.outputs.push_back(index);
    nest_.program.sinks.push_back({function_.type_of(value).element});
    const Storable storable = lanes_[value]->as_storable();
    if (encodes(storable.narrowing)) {
      builder_.store_by_cells(sink, storable.lanes, storable.narrowing, storable.cells);
    } else {
      builder_.store(sink, storable.lanes, storable.narrowing);
    }
  }

  /// The whole nest as one table of wider elements, where that is the fastest way.
  bool lower_as_table(uint32_t index) {
    const Operation* operation = defining_[function_.results[index]];
    if (operation == nullptr || operation->op != OpKind::convert) return false;
    const ValueId operand = operation->operands[0];
    const bool from_memory =
        defining_[operand] == nullptr || defining_[operand]->op == OpKind::constant;
    const ElementType from = function_.type_of(operand).element;
    const ElementType to = function_.type_of(operation->results[0]).element;
    const std::optional<StoreTable> table =
        from_memory
            ? store_table(from, to, canonical_options(from, to, convert_options(*operation)))
            : std::nullopt;
    if (!table || !builder_.has_look_up(table->entries.index_bits)) return false;
    LaneTensor bytes = source(operand);
    nest_.outputs.push_back(index);
    nest_.program.sinks.push_back({to});
    builder_.store_by_table(0, bytes.as_bits(), table->entries, table->look_up);
    return true;
  }

 private:
  /// Lowers the chain that ends in `value`, its beginning first.
  void lower_up_to(ValueId value) {
    std::vector<ValueId> pending = {value};
    while (!pending.empty()) {
      const ValueId next = pending.back();
      if (lanes_[next]) {
        pending.pop_back();
        continue;
      }
      const Operation* operation = defining_[next];
      if (operation == nullptr || operation->op == OpKind::constant) {
        lanes_[next] = source(next);
      } else if (!lanes_[operation->operands[0]]) {
        pending.push_back(operation->operands[0]);
      } else {
        lower(*operation);
      }
    }
  }

  LaneTensor source(ValueId value) {
    const ElementType element = function_.type_of(value).element;
    nest_.inputs.push_back(value);
    nest_.program.sources.push_back({element});
    return LaneTensor::from_source(builder_, element, static_cast<int>(nest_.inputs.size()) - 1);
  }

  void lower(const Operation& operation) {
    builder_.set_origin(static_cast<uint32_t>(&operation - function_.operations.data()));
    const ValueId result = operation.results[0];
    LaneTensor& operand = *lanes_[operation.operands[0]];
    const ElementType to = function_.type_of(result).element;
    const ConvertOptions options =
        canonical_options(operand.element(), to, convert_options(operation));
    lanes_[result] = lower_convert(builder_, operand, to, options);
  }

  const Function& function_;
  Nest& nest_;
  LaneBuilder builder_;
  std::vector<std::optional<LaneTensor>> lanes_;
  std::vector<const Operation*> defining_;
};

}  // namespace

std::vector<Nest> plan_nests(const Function& function, const Target& target) {
  const KernelFloatEnvironment environment;  // tables and constants are computed here
  const std::vector<ValueId> groups = iteration_groups(function);
  std::map<ValueId, std::vector<uint32_t>> outputs_of_group;
  for (uint32_t i = 0; i < function.results.size(); ++i) {
    outputs_of_group[groups[function.results[i]]].push_back(i);
  }
  std::vector<Nest> nests;
  for (const auto& [group, all_outputs] : outputs_of_group) {
    for (size_t first = 0; first < all_outputs.size(); first += most_outputs) {
      const size_t count = std::min(most_outputs, all_outputs.size() - first);
      const auto outputs = std::span(all_outputs).subspan(first, count);
      Nest& nest = nests.emplace_back();
      NestLowering lowering(function, target, nest);
      if (count > 1 || !lowering.lower_as_table(outputs.front())) {
        for (uint32_t output : outputs) lowering.add_output(output);
      }
      optimize(nest.program, target);
    }
  }
  return nests;
}

}  // namespace castor::jit
