// SPDX-License-Identifier: Apache-2.0
#include "bench/port_bound.hpp"

#include <fmt/format.h>

#include "jit/dump/dump.hpp"
#include "jit/listing/listing.hpp"
#include "runtime/state.hpp"

namespace castor::bench {

namespace {

const jit::CodeLoop* main_loop(const jit::MachineCode& code) {
  for (const jit::CodeLoop& loop : code.loops) {
    if (loop.name == "main loop") return &loop;
  }
  return code.loops.empty() ? nullptr : &code.loops.front();
}

/// The only nest of the bound kernel.
Result<const detail::BoundNest*> only_nest(const BoundKernel& kernel) {
  const detail::BoundState& bound = detail::StateAccess::of(kernel);
  if (bound.nests.size() != 1) {
    return Error{ErrorCode::internal, fmt::format("{} nests, expected one", bound.nests.size())};
  }
  return &bound.nests.front();
}

Result<jit::MachineCode> annotated_code(const BoundKernel& kernel) {
  const Result<const detail::BoundNest*> nest = only_nest(kernel);
  if (!nest) return nest.error();
  if ((*nest)->tiles) {
    return Error{ErrorCode::internal, "inputs are copied tile by tile, expected one loop"};
  }
  const detail::Compiled& compiled = *detail::StateAccess::of(kernel).kernel->compiled;
  return jit::emit_annotated(*compiled.canonical, compiled.nests.front(), (*nest)->space.form,
                             compiled.target);
}

}  // namespace

bool has_outer_loop(const BoundKernel& kernel) {
  const Result<const detail::BoundNest*> nest = only_nest(kernel);
  return nest && (*nest)->space.form.rank > 1;
}

bool same_loops(const BoundKernel& a, const BoundKernel& b) {
  const Result<const detail::BoundNest*> first = only_nest(a);
  const Result<const detail::BoundNest*> second = only_nest(b);
  return first && second && (*first)->space.form == (*second)->space.form;
}

Result<PortBound> port_bound(const BoundKernel& kernel) {
  const Result<jit::MachineCode> code = annotated_code(kernel);
  if (!code) return code.error();
  const jit::CodeLoop* loop = main_loop(*code);
  if (loop == nullptr || loop->elements == 0) {
    return Error{ErrorCode::internal, "the code has no loop, expected a main loop"};
  }
  const Result<jit::PortCycles> cycles = jit::port_cycles(*code, *loop);
  if (!cycles) return cycles.error();
  PortBound bound;
  bound.elements = loop->elements;
  bound.cycles_per_element = cycles->bound() / static_cast<double>(loop->elements);
  bound.limited_by = cycles->limited_by();
  if (bound.limited_by == "pipes") bound.limited_by += " " + cycles->busiest;
  return bound;
}

}  // namespace castor::bench
