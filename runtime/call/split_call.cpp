// SPDX-License-Identifier: Apache-2.0
// Calls of a nest's code in parts.
#include "runtime/call/nest_call.hpp"
#include "runtime/call/nest_split.hpp"

namespace castor::detail {

void call_split(const ElementwiseStep& step, const KernelCode<jit::NestSpec>& code,
                const BoundCode& bound, const int64_t* arguments, int64_t tasks, CallTasks& by) {
  const ReadyNest ready{step, bound, code, arguments};
  const NestSplit split = split_nest(ready, tasks);
  const int64_t units = split.count();
  const int64_t count = std::min(tasks, units);
  if (count <= 1) return code.entry()(arguments);
  by.run(count, [&](int64_t task) {
    run_units(ready, split, units * task / count, units * (task + 1) / count);
  });
}

}  // namespace castor::detail
