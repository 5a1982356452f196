// SPDX-License-Identifier: Apache-2.0
#include "bench/port_bound.hpp"

#include <fmt/format.h>

#include "jit/core/core_tuning.hpp"
#include "jit/dump/dump.hpp"
#include "jit/listing/listing.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/compiled.hpp"
#include "runtime/state_access.hpp"

namespace castor::bench {

namespace {

const jit::CodeLoop* main_loop(const jit::MachineCode& code) {
  for (const jit::CodeLoop& loop : code.loops) {
    if (loop.name == "main loop") return &loop;
  }
  return code.loops.empty() ? nullptr : &code.loops.front();
}

/// The only step of the bound kernel, which is elementwise.
Result<const detail::ElementwiseStep*> only_step(const BoundKernel& kernel) {
  const detail::BoundState& bound = detail::StateAccess::of(kernel);
  if (bound.steps.size() != 1) {
    return Error{ErrorCode::internal, fmt::format("{} steps, expected one", bound.steps.size())};
  }
  const auto* step = std::get_if<detail::ElementwiseStep>(&bound.steps.front());
  if (step == nullptr) return Error{ErrorCode::internal, "expected an elementwise step"};
  return step;
}

Result<jit::MachineCode> annotated_code(const BoundKernel& kernel) {
  const Result<const detail::ElementwiseStep*> step = only_step(kernel);
  if (!step) return step.error();
  if ((*step)->tiles) {
    return Error{ErrorCode::internal, "inputs are copied tile by tile, expected one loop"};
  }
  const detail::Compiled& compiled = *detail::StateAccess::of(kernel).kernel->compiled;
  return jit::emit_annotated(*compiled.canonical, compiled.nests.front(), (*step)->space.form,
                             compiled.target);
}

}  // namespace

bool has_outer_loop(const BoundKernel& kernel) {
  const Result<const detail::ElementwiseStep*> step = only_step(kernel);
  return step && (*step)->space.form.rank > 1;
}

bool same_loops(const BoundKernel& a, const BoundKernel& b) {
  const Result<const detail::ElementwiseStep*> first = only_step(a);
  const Result<const detail::ElementwiseStep*> second = only_step(b);
  return first && second && (*first)->space.form == (*second)->space.form;
}

Result<PortBound> port_bound(const BoundKernel& kernel) {
  const Result<jit::MachineCode> code = annotated_code(kernel);
  if (!code) return code.error();
  const jit::CodeLoop* loop = main_loop(*code);
  if (loop == nullptr || loop->elements == 0) {
    return Error{ErrorCode::internal, "the code has no loop, expected a main loop"};
  }
  const jit::Target& target = detail::StateAccess::of(kernel).kernel->compiled->target;
  const Result<jit::PortCycles> cycles =
      jit::port_cycles(*code, *loop, jit::port_model_of(target.core, jit::host().identity));
  if (!cycles) return cycles.error();
  PortBound bound;
  bound.elements = loop->elements;
  bound.cycles_per_element = cycles->bound() / static_cast<double>(loop->elements);
  bound.limited_by = cycles->limited_by();
  if (bound.limited_by == "pipes") bound.limited_by += " " + cycles->busiest;
  return bound;
}

}  // namespace castor::bench
