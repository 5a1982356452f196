// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind/value_origins.hpp"

#include "jit/plan/access_pattern.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/compiled.hpp"

namespace castor::detail {

ValueOrigins::ValueOrigins(const BoundState& bound, BoundShapes shapes)
    : bound_(bound),
      function_(*bound.kernel->compiled->canonical),
      roots_(jit::reshape_roots(function_)),
      owners_(jit::accumulator_owners(function_)),
      shapes_(std::move(shapes)) {
  for (size_t i = 0; i < function_.parameters.size(); ++i) inputs_[function_.parameters[i]] = i;
  for (const Operation& operation : function_.operations) {
    if (operation.op == OpKind::constant) constants_[operation.results[0]] = &operation;
  }
  for (const jit::Nest& nest : bound.kernel->compiled->nests) {
    for (const jit::NestOutput& output : nest.outputs) {
      if (!output.is_scratch()) results_.try_emplace(output.value, output.result);
      if (output.accumulator >= 0) ++accumulator_counts_[owners_[output.value]];
    }
    for (const jit::NestInput& input : nest.inputs) {
      ++(input.accumulator >= 0 ? accumulator_reads_left_[owners_[input.value]]
                                : reads_left_[root_of(input.value)]);
    }
  }
}

TensorOrigin ValueOrigins::in_scratch(ValueId value, ElementType element, const Dims& extents) {
  const auto [at, is_new] = scratch_.try_emplace(value, 0);
  if (const auto inside = inside_.find(value); inside != inside_.end()) return inside->second;
  if (is_new) {
    const int64_t count = element_count(extents).value_or(0);
    at->second = plan_.take(static_cast<size_t>(byte_size(element, count).value_or(0)));
  }
  return {{.kind = OperandOrigin::Kind::scratch, .offset = at->second},
          extents,
          dense_strides(extents)};
}

TensorOrigin ValueOrigins::of_root(ValueId root, ElementType element) {
  if (has_scratch(root)) return in_scratch(root, element, extents_of(root));
  if (const auto parameter = inputs_.find(root); parameter != inputs_.end()) {
    const size_t index = parameter->second;
    return {{.kind = OperandOrigin::Kind::input, .index = index},
            extents_of(root),
            bound_.inputs[index].strides};
  }
  const auto constant = constants_.find(root);
  if (constant == constants_.end()) {
    const auto result = results_.find(root);
    if (result == results_.end()) return in_scratch(root, element, extents_of(root));
    return {{.kind = OperandOrigin::Kind::output, .index = result->second},
            extents_of(root),
            bound_.outputs[result->second].strides};
  }
  return {{.kind = OperandOrigin::Kind::constant, .constant = constant->second->data->bytes.data()},
          extents_of(root),
          dense_strides(extents_of(root))};
}

ContentId ValueOrigins::content_of(ValueId root) const {
  const Operation& constant = *constants_.at(root);
  return constant.data_id.is_of(constant.data) ? constant.data_id : ContentId(constant.data);
}

TensorOrigin ValueOrigins::of_accumulator(ValueId reduction, int number, ElementType element) {
  const ValueId owner = owners_[reduction];
  const Dims& extents = extents_of(reduction);
  const int64_t count = element_count(extents).value_or(0);
  const auto bytes = static_cast<size_t>(byte_size(element, count).value_or(0));
  const auto [at, is_new] = accumulators_.try_emplace(owner, 0);
  if (is_new) at->second = plan_.take(accumulator_counts_.at(owner) * bytes);
  const size_t offset = at->second + static_cast<size_t>(number) * bytes;
  return {
      {.kind = OperandOrigin::Kind::scratch, .offset = offset}, extents, dense_strides(extents)};
}

TensorOrigin ValueOrigins::of_output(const jit::NestOutput& output, ElementType element,
                                     const Dims& extents) {
  if (output.is_scratch()) return in_scratch(output.value, element, extents);
  return {{.kind = OperandOrigin::Kind::output, .index = output.result},
          extents,
          bound_.outputs[output.result].strides};
}

bool ValueOrigins::is_dense(ValueId value, const TensorOrigin& origin) const {
  if (element_count(origin.extents).value_or(0) == 0) return true;
  const Dims& extents = extents_of(value);
  return jit::reshaped_strides(origin.extents, origin.strides, extents) ==
         jit::reshaped_strides(extents, dense_strides(extents), extents);
}

void ValueOrigins::count_reads_of(const jit::Nest& nest) {
  for (const jit::NestInput& input : nest.inputs) {
    input.accumulator >= 0 ? count_read_of_accumulators(owners_[input.value])
                           : count_read(root_of(input.value));
  }
}

void ValueOrigins::count_read_of_accumulators(ValueId owner) {
  if (--accumulator_reads_left_[owner] > 0) return;
  const auto at = accumulators_.find(owner);
  if (at == accumulators_.end()) return;  // without elements they have no memory
  plan_.give_back(at->second);
  accumulators_.erase(at);
}

/// Counts one read; after the last one a value's scratch is free.
void ValueOrigins::count_read(ValueId root) {
  if (--reads_left_[root] <= 0 && has_scratch(root)) give_back(root);
}

void ValueOrigins::give_back(ValueId value) {
  const auto origin = scratch_.find(value);
  plan_.give_back(origin->second);
  scratch_.erase(origin);
  inside_.erase(value);
}

}  // namespace castor::detail
