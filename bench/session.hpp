// SPDX-License-Identifier: Apache-2.0
// What the benchmarks of one run share: runtimes, memory, plain kernels, the clock, failures.
#pragma once

#include <benchmark/benchmark.h>
#include <castor/castor.hpp>

#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/bound_call.hpp"
#include "bench/core_clock.hpp"
#include "bench/footprint.hpp"
#include "bench/limits.hpp"
#include "bench/options.hpp"

namespace castor::bench {

/// A runtime that generates code for one tier.
struct TierRuntime {
  Tier tier;
  Runtime runtime;
};

/// Binds `pair` to the tensors of the workspace. Fails (internal) where the interpreter would run.
Result<BoundCall> bind_conversion(const Runtime& runtime, const TypePair& pair,
                                  const Workspace& workspace);

/// Not thread safe; lives while benchmarks run.
class Session {
 public:
  /// Makes a runtime for the tier asked for (or CASTOR_ISA, or the best), and one for each tier
  /// that the host has.
  static Result<std::unique_ptr<Session>> open(const Options& options);

  Tier tier() const { return tier_; }
  const Runtime& runtime() const { return runtime_; }
  const CoreClock& clock() const { return clock_; }
  PlainKernels& plain_kernels() { return plain_kernels_; }
  Effort effort(const Footprint& footprint) const;
  /// How conversions of that footprint store.
  RunOptions run_options(const Footprint& footprint) const;

  /// One for each tier that the host has.
  std::span<const TierRuntime> all_tiers() const { return all_tiers_; }

  /// Memory for tensors of that footprint, which all benchmarks share; placement_slack larger.
  Result<std::span<std::byte>> memory(const Footprint& footprint);
  /// Tensors for the pair, in that memory.
  Result<Workspace> workspace(const TypePair& pair, const Footprint& footprint);

  /// Once for each pair: all tiers give the same bits, and samples of them are right.
  Status check_all_tiers(const TypePair& pair);

  /// Reports a benchmark as failed and remembers it.
  void fail(benchmark::State& state, const Error& error);
  /// Reports a benchmark that this machine cannot run; not a failure.
  void skip(benchmark::State& state, const Error& error);
  bool failed() const { return failed_; }

 private:
  Session(const Options& options, Tier tier, Runtime runtime)
      : cell_seconds_(options.cell_seconds),
        stores_(options.stores),
        tier_(tier),
        runtime_(std::move(runtime)) {}

  double cell_seconds_;
  StorePolicy stores_;
  Tier tier_;
  Runtime runtime_;
  std::vector<TierRuntime> all_tiers_;
  CoreClock clock_;
  PlainKernels plain_kernels_;
  std::map<size_t, HugeBuffer> memory_;  // by footprint
  std::set<std::pair<ElementType, ElementType>> checked_;
  bool failed_ = false;
};

}  // namespace castor::bench
