// SPDX-License-Identifier: Apache-2.0
#include "ir/composition/expand.hpp"

#include <algorithm>

#include "ir/composition/definition.hpp"
#include "ir/rewrite/rebuild.hpp"

namespace castor {

namespace {

bool is_composition(const Operation& operation) {
  return info(operation.op).family == OpFamily::composition;
}

/// Appends the definition; its results have the names of the operation's.
Status expand(FunctionBuilder& builder, const Function& function, const Operation& operation,
              detail::CopiedIds& ids) {
  std::vector<ValueId> operands;
  for (ValueId id : operation.operands) operands.push_back(id == no_value ? id : ids[id]);
  const ElementType element = function.type_of(operation.results[0]).element;
  const auto results = append_definition(builder, operation, operands, element);
  if (!results) return results.error();
  for (size_t i = 0; i < results->size(); ++i) {
    ids[operation.results[i]] = (*results)[i];
    builder.name((*results)[i], function.values[operation.results[i]].name);
  }
  return {};
}

}  // namespace

bool has_compositions(const Function& function) {
  return std::ranges::any_of(function.operations, is_composition);
}

Result<FunctionPtr> expand_compositions(const Function& function) {
  FunctionBuilder builder(function.name);
  detail::CopiedIds ids = detail::append_parameters(builder, function);
  for (const Operation& operation : function.operations) {
    if (!is_composition(operation)) {
      detail::append_copy(builder, function, operation, ids);
    } else if (Status status = expand(builder, function, operation, ids); !status) {
      return status.error();
    }
  }
  return detail::finish_copy(builder, function, ids);
}

}  // namespace castor
