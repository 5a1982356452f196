// SPDX-License-Identifier: Apache-2.0
#include "bench/port_bound.hpp"

#include <fmt/format.h>

#include "ir/canonicalize.hpp"
#include "jit/dump.hpp"
#include "jit/listing/listing.hpp"

namespace castor::bench {

namespace {

const jit::CodeLoop* main_loop(const jit::MachineCode& code) {
  for (const jit::CodeLoop& loop : code.loops) {
    if (loop.name == "main loop") return &loop;
  }
  return code.loops.empty() ? nullptr : &code.loops.front();
}

}  // namespace

Result<PortBound> port_bound(const FunctionPtr& function, const jit::Target& target) {
  const auto codes = jit::emit_annotated(*canonicalize(function), target);
  if (!codes) return codes.error();
  if (codes->size() != 1) {
    return Error{ErrorCode::internal, fmt::format("{} nests, expected one", codes->size())};
  }
  const jit::CodeLoop* loop = main_loop(codes->front());
  if (loop == nullptr || loop->elements == 0) {
    return Error{ErrorCode::internal, "the code has no loop, expected a main loop"};
  }
  const Result<jit::PortCycles> cycles = jit::port_cycles(codes->front(), *loop);
  if (!cycles) return cycles.error();
  PortBound bound;
  bound.elements = loop->elements;
  bound.cycles_per_element = cycles->bound() / static_cast<double>(loop->elements);
  bound.limited_by = cycles->limited_by();
  if (bound.limited_by == "pipes") bound.limited_by += " " + cycles->busiest;
  return bound;
}

}  // namespace castor::bench
