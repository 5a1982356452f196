// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/query/subject.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/builder.hpp"
#include "ir/rewrite/canonicalize.hpp"
#include "tools/prove/lane/execute.hpp"
#include "tools/prove/spec/convert.hpp"

namespace castor::prove {

Result<Subject> subject_of(const Conversion& conversion) {
  FunctionBuilder builder("f");
  const ValueId x = builder.parameter("x", {conversion.from, {Dim::any()}});
  builder.result(builder.convert(x, conversion.to, conversion.options));
  Result<FunctionPtr> function = builder.finish();
  if (!function) return function.error();
  const std::string options = to_string(conversion.options);
  return Subject{.name = fmt::format("{} -> {}{}", name_of(conversion.from), name_of(conversion.to),
                                     options.empty() ? "" : " {" + options + "}"),
                 .function = *function,
                 .specification = [conversion](std::span<const Term> operands) {
                   return specified_conversion(operands[0], conversion.from, conversion.to,
                                               conversion.options);
                 }};
}

namespace {

std::string name_of_op(const ElementwiseOp& op) {
  std::string name = fmt::format("{} {}", info(op.op).name, name_of(op.type));
  if (op.lo) name += fmt::format(" lo {}", *op.lo);
  if (op.hi) name += fmt::format(" hi {}", *op.hi);
  return name;
}

ValueId built(FunctionBuilder& builder, const ElementwiseOp& op, std::span<const ValueId> v) {
  if (op.op == OpKind::clamp) return builder.clamp(v[0], op.lo, op.hi);
  if (op.op == OpKind::select) return builder.select(v[0], v[1], v[2]);
  return v.size() == 1 ? builder.unary(op.op, v[0]) : builder.binary(op.op, v[0], v[1]);
}

}  // namespace

Result<Subject> subject_of(const ElementwiseOp& op) {
  FunctionBuilder builder("f");
  std::vector<ValueId> operands;
  for (const ElementType type : operand_types(op)) {
    operands.push_back(
        builder.parameter(fmt::format("x{}", operands.size()), {type, {Dim::named("n")}}));
  }
  builder.result(built(builder, op, operands));
  Result<FunctionPtr> function = builder.finish();
  if (!function) return function.error();
  return Subject{
      .name = name_of_op(op),
      .function = *function,
      .specification = [op](std::span<const Term> bits) { return specified_result(op, bits); }};
}

namespace {

jit::Target target_of(jit::Tier tier) {
  jit::Target target;
  target.tier = tier;
  return target;
}

/// The nest of a function that becomes a single one.
Result<jit::Nest> single_nest(const Function& function, jit::Tier tier) {
  std::vector<jit::Nest> nests = jit::plan_nests(function, target_of(tier));
  if (nests.size() == 1 && nests[0].outputs.size() == 1) return std::move(nests[0]);
  return Error(
      ErrorCode::unsupported,
      fmt::format("the function becomes {} nests, expected one of one output", nests.size()));
}

/// The parameter's position.
size_t parameter_of(const Function& function, ValueId value) {
  const auto at = std::ranges::find(function.parameters, value);
  return static_cast<size_t>(at - function.parameters.begin());
}

}  // namespace

Result<Query> query_of(const Subject& subject, jit::Tier tier, Terms& terms) {
  const FunctionPtr canonical = canonicalize(subject.function);
  Result<jit::Nest> nest = single_nest(*canonical, tier);
  if (!nest) return nest.error();
  if (subject.tamper) subject.tamper(nest->program);
  std::vector<Term> operands;
  std::vector<ElementType> types;
  for (const ValueId parameter : subject.function->parameters) {
    types.push_back(subject.function->type_of(parameter).element);
    operands.push_back(terms.input(fmt::format("x{}", operands.size()), bits_of(types.back())));
  }
  std::vector<Term> elements;
  for (const jit::NestInput& input : nest->inputs) {
    const size_t parameter = parameter_of(*canonical, input.value);
    if (parameter >= operands.size()) {
      return Error(ErrorCode::unsupported, "the nest reads what is no parameter");
    }
    elements.push_back(operands[parameter]);
  }
  Result<LaneResult> computed = execute(nest->program, elements, terms);
  if (!computed) return computed.error();
  const Term specified = subject.specification(operands);
  const Term element = computed->elements[0];
  return Query{.nest = std::move(*nest),
               .is_wrong = computed->broken | not_equal(element, specified),
               .operands = types,
               .result = canonical->type_of(canonical->results[0]).element,
               .computed = element,
               .specified = specified};
}

}  // namespace castor::prove
