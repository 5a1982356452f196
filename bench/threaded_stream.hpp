// SPDX-License-Identifier: Apache-2.0
// A call by two threads, beside the same call by one, and beside plain kernels that move equally
// many bytes by two threads: the memory limit of two cores.
#pragma once

#include <benchmark/benchmark.h>

#include "bench/bound_call.hpp"
#include "bench/footprint.hpp"
#include "bench/limits.hpp"
#include "bench/session.hpp"

namespace castor::bench {

/// Figures of one call; ratios are medians of one moment.
struct ThreadedFigures {
  double ns = 0;               ///< by two threads
  double one_thread_ns = 0;    ///< by one
  double speedup = 0;          ///< two threads over one
  double stream_fraction = 0;  ///< the fastest plain kernel's time by two threads over ours
  double plain_speedup = 0;    ///< two threads over one, of that plain kernel
  double bytes = 0;            ///< read and written
  std::string plain_name;
};

/// Measures a call that is right, with its options but for the executor. The tensors are those of
/// the call.
ThreadedFigures measure_by_two(Session& session, const BoundCall& call, const Streams& streams,
                               const Footprint& footprint, const PlainTensors& tensors);

void report_by_two(benchmark::State& state, const ThreadedFigures& figures);

}  // namespace castor::bench
