// SPDX-License-Identifier: Apache-2.0
// A run of the fuzzer: programs one after the other in a child process, coverage, reports.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/fuzz/executor.hpp"

namespace castor::fuzz {

struct FuzzOptions {
  std::vector<Tier> tiers;  ///< that every program runs on; this machine runs them
  uint64_t seed = 1;
  std::optional<uint64_t> count;  ///< programs; nothing: until the time is over
  std::optional<double> seconds;  ///< time to fuzz, without the time that minimising takes
  size_t max_reports = 5;         ///< mismatches that are minimised; others are only counted
  std::function<void(const std::string&)> report;  ///< gets each report as soon as it is there
  Tamper tamper;                                   ///< for tests of the fuzzer
};

struct FuzzSummary {
  uint64_t programs = 0;    ///< functions with one set of data; each ran on every tier
  uint64_t mismatches = 0;  ///< programs that failed on a tier
  double seconds = 0;       ///< time spent fuzzing
  std::string coverage;     ///< hits and cells of every group, and cells not hit
  size_t cells_hit = 0;
  size_t cells = 0;
};

/// Fuzzes. What the programs do to memory, crashes included, happens in child processes. Programs
/// are a pure function of seed and tiers; where a mismatch ends one child, the next begins after
/// it. Fails where no machine code can run, or no process can be had. Call it from a process with
/// one thread.
Result<FuzzSummary> run_fuzzer(const FuzzOptions& options);

/// The line that ends the output of `castor fuzz`: "N programs, M mismatches".
std::string last_line(const FuzzSummary& summary);

}  // namespace castor::fuzz
