// SPDX-License-Identifier: Apache-2.0
// Tables of measured instructions beside what the port model says of them.
#pragma once

#include <string>
#include <vector>

#include "ir/support/result.hpp"
#include "jit/core/core_tuning.hpp"

namespace castor::bench {

struct InstructionTable {
  jit::PortModel model = jit::PortModel::zen4;
  std::string only;        ///< forms whose names begin with it
  double budget_ns = 6e6;  ///< for each figure
};

/// "form,cycles,model,latency,model_latency" for every form that this machine runs. A figure that
/// is not known is empty.
Status print_instructions(const InstructionTable& table);

/// "form,cycles,PROBE..." : cycles of a form alone, and of one of it and one of each probe. Two
/// forms of 0.5 cycles that share both ports take 1 together, 0.5 where they share none, and 0.67
/// where they share one of them. Fails (invalid_argument) where a probe is no form.
Status print_pairs(const InstructionTable& table, const std::vector<std::string>& probes);

}  // namespace castor::bench
