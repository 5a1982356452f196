// SPDX-License-Identifier: Apache-2.0
#include "tests/support/traced_call.hpp"

#include <ucontext.h>

#include <algorithm>
#include <csignal>
#include <vector>

#include "tests/support/backtrace.hpp"
#include "tests/support/process_maps.hpp"

namespace castor::test {

namespace {

constexpr greg_t trap_flag = 0x100;

/// What the handler works on.
struct Trace {
  bool is_on = false;
  std::vector<ProcessMapping> code;        ///< arenas
  std::vector<std::vector<bool>> visited;  ///< bytes of each
  Backtrace outside;                       ///< as seen by who makes the call
  TracedCall found;
} trace;

/// The functions of this program between a call and its outside.
[[gnu::noinline]] bool make_call(const BoundKernel& bound, std::span<const ConstView> inputs,
                                 std::span<const View> outputs) {
  trace.outside = Backtrace::here();
  trace.is_on = true;
  ::raise(SIGTRAP);
  const bool is_ok = bound.run(inputs, outputs).ok();
  trace.is_on = false;
  return is_ok;
}

/// Whether an instruction of generated code is reached for the first time.
bool is_new_code(uintptr_t instruction) {
  for (size_t i = 0; i < trace.code.size(); ++i) {
    if (instruction < trace.code[i].begin || instruction >= trace.code[i].end) continue;
    auto visited = trace.visited[i][instruction - trace.code[i].begin];
    if (visited) return false;
    return visited = true;
  }
  return false;
}

void on_trap(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  registers[REG_EFL] &= ~trap_flag;
  if (!trace.is_on) return;
  registers[REG_EFL] |= trap_flag;
  const auto instruction = static_cast<uintptr_t>(registers[REG_RIP]);
  if (!is_new_code(instruction)) return;
  ++trace.found.instructions;
  const auto* const caller = reinterpret_cast<const void*>(&make_call);
  const Backtrace found = Backtrace::here();
  const auto outside = trace.outside.callers_of(caller);
  if (!outside.empty() && std::ranges::equal(found.callers_of(caller), outside)) return;
  if (trace.found.lost++ == 0) trace.found.first_lost = instruction;
}

/// Handles SIGTRAP for as long as it lives.
class TrapHandler {
 public:
  TrapHandler() {
    struct sigaction action {};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGTRAP, &action, &before_);
  }
  ~TrapHandler() { ::sigaction(SIGTRAP, &before_, nullptr); }
  TrapHandler(const TrapHandler&) = delete;
  TrapHandler& operator=(const TrapHandler&) = delete;

 private:
  struct sigaction before_ {};
};

}  // namespace

TracedCall trace_call(const BoundKernel& bound, std::span<const ConstView> inputs,
                      std::span<const View> outputs) {
  trace = {};
  for (const ProcessMapping& mapping : process_maps()) {
    if (!mapping.of_code_memory() || !mapping.executable()) continue;
    trace.code.push_back(mapping);
    trace.visited.emplace_back(mapping.end - mapping.begin);
  }
  const TrapHandler handler;
  trace.found.is_ok = make_call(bound, inputs, outputs);
  return trace.found;
}

}  // namespace castor::test
