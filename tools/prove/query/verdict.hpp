// SPDX-License-Identifier: Apache-2.0
// Deciding one query: by the solver, by running all inputs, or not.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/prove/query/subject.hpp"

namespace castor::prove {

enum class Status : uint8_t {
  proved,     ///< for all inputs, by the solver
  exhausted,  ///< all inputs were run, on the terms of lane program and specification
  /// Proved whatever f32 and f64 sums, products, quotients and roots compute: the specification and
  /// the program have the same ones of the same operands.
  identity,
  open,   ///< not decided
  wrong,  ///< there is a counterexample
};
std::string_view name_of(Status status);
std::optional<Status> status_named(std::string_view name);

/// How long to try.
struct Effort {
  uint64_t solver_steps = 4'000'000;     ///< for a whole question to the solver; see Steps
  uint64_t case_steps = 20'000'000;      ///< for each case of one that was too much as a whole
  std::chrono::seconds exhaustion{900};  ///< processor time for running all inputs
};

struct Verdict {
  Status status = Status::open;
  std::string reason;        ///< open: what was tried
  std::vector<Bits> inputs;  ///< wrong: the counterexample
  double seconds = 0;
  uint64_t steps = 0;      ///< that the solver took
  bool is_costly = false;  ///< decided by cases, by running more than 2^16 inputs, or in many steps
};

/// Whether a query was proved, or is, now that it is asked for.
using IsProved = std::function<bool(const Query& query)>;

/// `is_proved` is asked for a query that implies this one, and many others.
Verdict decide(const Query& query, const Effort& effort, const IsProved& is_proved = {});

}  // namespace castor::prove
