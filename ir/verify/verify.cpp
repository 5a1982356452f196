// SPDX-License-Identifier: Apache-2.0
// The rules of whole functions: a table, one small function for each rule.
#include "ir/verify/verify.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "ir/text/text.hpp"
#include "ir/verify/verify_rules.hpp"

namespace castor {

using detail::Finding;
using detail::finding;
using detail::label;
using detail::MaybeFinding;

namespace {

MaybeFinding sizes_are_bounded(const Function& function) {
  if (function.operations.size() > max_operations) {
    return Finding{fmt::format("found {} operations", function.operations.size())};
  }
  const size_t uses = std::max(function.parameters.size(), function.results.size());
  if (std::max(function.values.size(), uses) > max_values) {
    return Finding{fmt::format("found {} values, {} parameters and {} results",
                               function.values.size(), function.parameters.size(),
                               function.results.size())};
  }
  return {};
}

MaybeFinding ops_are_known(const Function& function) {
  for (const Operation& operation : function.operations) {
    if (static_cast<size_t>(operation.op) < op_count) continue;
    return Finding{fmt::format("found op number {}, expected 0 to {}",
                               static_cast<int>(operation.op), op_count - 1)};
  }
  return {};
}

MaybeFinding ids_name_values(const Function& function) {
  const auto wrong = [&](const std::vector<ValueId>& ids, bool optional) {
    return std::find_if(ids.begin(), ids.end(), [&](ValueId id) {
             return id >= function.values.size() && !(optional && id == no_value);
           }) != ids.end();
  };
  if (wrong(function.parameters, false)) return Finding{"a parameter is none of them"};
  if (wrong(function.results, false)) return Finding{"a result is none of them"};
  for (size_t i = 0; i < function.operations.size(); ++i) {
    const Operation& operation = function.operations[i];
    if (wrong(operation.operands, true) || wrong(operation.results, false)) {
      return Finding{fmt::format("an operand or result of operation {} ({}) is none of them", i,
                                 name_of(operation.op))};
    }
  }
  return {};
}

MaybeFinding names_are_valid(const Function& function) {
  if (!is_identifier(function.name)) {
    return Finding{fmt::format("the function's name is \"{}\"", function.name)};
  }
  for (const Value& value : function.values) {
    if (!is_value_name(value.name)) return Finding{fmt::format("found \"%{}\"", value.name)};
  }
  for (const Operation& operation : function.operations) {
    if (!operation.data || operation.data->binding.empty()) continue;
    if (!is_identifier(operation.data->binding)) {
      return Finding{fmt::format("found \"@{}\"", operation.data->binding)};
    }
  }
  return {};
}

MaybeFinding names_are_unique(const Function& function) {
  std::unordered_set<std::string_view> names;
  for (const Value& value : function.values) {
    if (!names.insert(value.name).second)
      return Finding{fmt::format("%{} is repeated", value.name)};
  }
  return {};
}

MaybeFinding types_are_valid(const Function& function) {
  for (const Value& value : function.values) {
    if (Status status = verify_type(value.type, "%" + value.name); !status) {
      return finding(status.error());
    }
  }
  return {};
}

MaybeFinding values_are_defined_once_before_use(const Function& function) {
  std::vector<char> defined(function.values.size(), 0);
  const auto define = [&](ValueId id) { return std::exchange(defined[id], 1) == 0; };
  for (ValueId id : function.parameters) {
    if (!define(id)) return Finding{fmt::format("{} is defined twice", label(function, id))};
  }
  for (const Operation& operation : function.operations) {
    for (ValueId id : operation.operands) {
      if (id == no_value || defined[id]) continue;
      return Finding{fmt::format("{} is not defined before it is used", label(function, id)),
                     &operation};
    }
    for (ValueId id : operation.results) {
      if (define(id)) continue;
      return Finding{fmt::format("{} is defined twice", label(function, id)), &operation};
    }
  }
  const auto missing = std::find(defined.begin(), defined.end(), 0);
  if (missing == defined.end()) return {};
  const auto id = static_cast<ValueId>(missing - defined.begin());
  return Finding{fmt::format("{} is never defined", label(function, id))};
}

MaybeFinding results_are_declared(const Function& function) {
  if (function.results.empty()) return Finding{"found no result"};
  if (function.results.size() != function.result_types.size()) {
    return Finding{fmt::format("found {} results and {} declared types", function.results.size(),
                               function.result_types.size())};
  }
  for (size_t i = 0; i < function.results.size(); ++i) {
    const ValueId id = function.results[i];
    const std::string what = fmt::format("result {} ({})", i, label(function, id));
    Status status = verify_declared_type(function.result_types[i], function.type_of(id), what);
    if (!status) return finding(status.error());
  }
  return {};
}

/// Parameters are all that binds a name before an operation asks for its extent.
MaybeFinding targets_name_extents_of_parameters(const Function& function) {
  std::unordered_set<std::string_view> names;
  for (ValueId id : function.parameters) {
    for (const Dim& dim : function.type_of(id).shape) names.insert(dim.name);
  }
  for (const Operation& operation : function.operations) {
    if (!operation.target) continue;
    for (const Dim& dim : *operation.target) {
      if (dim.name.empty() || names.contains(dim.name)) continue;
      return Finding{fmt::format("found ?{}, which no parameter has", dim.name), &operation};
    }
  }
  return {};
}

/// They are checked before anything is written.
MaybeFinding run_time_parameters_come_first(const Function& function) {
  std::vector<char> is_given(function.values.size(), 0);
  for (ValueId id : function.parameters) is_given[id] = 1;
  for (const Operation& operation : function.operations) {
    if (operation.op == OpKind::constant) {
      for (ValueId id : operation.results) is_given[id] = 1;
    }
    if (operation.op != OpKind::requantize) continue;
    for (size_t i = 1; i < operation.operands.size(); ++i) {
      const ValueId id = operation.operands[i];
      if (id == no_value || is_given[id]) continue;
      return Finding{fmt::format("{} is computed", label(function, id)), &operation};
    }
  }
  return {};
}

MaybeFinding function_attributes_are_known(const Function& function) {
  for (const Attribute& attribute : function.attributes) {
    const bool known = attribute.name == "excess_precision" &&
                       attribute.value == AttributeValue{Identifier{"allow"}};
    if (known && function.attributes.size() == 1) continue;
    return Finding{fmt::format("found {} = {}", attribute.name, to_string(attribute.value))};
  }
  return {};
}

/// Later rules rely on earlier ones.
struct FunctionRule {
  std::string_view rule;
  MaybeFinding (*check)(const Function&);
};

constexpr FunctionRule function_rules[] = {
    {"a function has at most 65536 operations and 65536 values", sizes_are_bounded},
    {"ops are those of the op table", ops_are_known},
    {"operands, results and parameters are values of the function", ids_name_values},
    {"names are letters, digits, _ . $ -, beginning with a letter or _ (values: or digits only)",
     names_are_valid},
    {"names of values are unique", names_are_unique},
    {"types are valid", types_are_valid},
    {"every value is defined once, before it is used", values_are_defined_once_before_use},
    {"a function has results, of the types declared", results_are_declared},
    {"unknown extents of a target are named as those of parameters",
     targets_name_extents_of_parameters},
    {"scale, frac and zero point of requantize are parameters of the function, or constants",
     run_time_parameters_come_first},
    {"the only function attribute is excess_precision = allow", function_attributes_are_known},
};
static_assert(max_operations == 65536 && max_values == 65536);

// ---- Messages.

/// The operation's text; by parts where its form is too broken, or its data too long, to print.
std::string describe(const Function& function, const Operation& operation) {
  const OpInfo& row = info(operation.op);
  const bool well_formed = operation.results.size() == static_cast<size_t>(row.results) &&
                           operation.operands.size() == static_cast<size_t>(row.operands);
  if (well_formed && !operation.data && operation.op != OpKind::constant) {
    return print(function, operation);
  }
  const auto labels = [&](const std::vector<ValueId>& ids) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < std::min<size_t>(ids.size(), 4); ++i) {
      texts.push_back(label(function, ids[i]));
    }
    if (ids.size() > texts.size()) texts.emplace_back("...");
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  return fmt::format("{}{}{}{}{}", labels(operation.results),
                     operation.results.empty() ? "" : " = ", row.name,
                     operation.operands.empty() ? "" : " ", labels(operation.operands));
}

Error broken(const Function& function, const Operation* operation, std::string_view rule,
             const Finding& found) {
  const std::string subject =
      operation ? describe(function, *operation) : fmt::format("function @{}", function.name);
  return {found.code, fmt::format("{}: {}: {}", subject, rule, found.detail),
          operation ? operation->where : TextPosition{}};
}

}  // namespace

Status verify(const Function& function) {
  for (const FunctionRule& rule : function_rules) {
    const MaybeFinding found = rule.check(function);
    if (found) return broken(function, found->operation, rule.rule, *found);
  }
  for (const Operation& operation : function.operations) {
    for (const detail::OperationRule& rule : detail::operation_rules()) {
      const MaybeFinding found = rule.check(function, operation);
      if (found) return broken(function, &operation, rule.rule, *found);
    }
  }
  return {};
}

}  // namespace castor
