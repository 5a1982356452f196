// SPDX-License-Identifier: Apache-2.0
// The figures that conversions and elementwise functions share: stream_fraction, port_fraction.
#pragma once

#include <benchmark/benchmark.h>

#include <string>

#include "bench/loop_slope.hpp"
#include "bench/port_bound.hpp"

namespace castor::bench {

/// The main loop in L1: the port model's bound, and how to measure it.
struct MainLoop {
  PortBound bound;
  LoopSlope slope;
};

/// Figures of one benchmark; fractions are medians of the ratio in one moment.
struct StreamFigures {
  double ns = 0;               ///< one run
  double bytes = 0;            ///< read and written in one run
  double stream_fraction = 0;  ///< the fastest plain kernel's time over ours
  std::string plain_name;
  double gigahertz = 0;
  double cycles_per_element = 0;  ///< in the main loop; in L1 only
};

/// Sets time, counters and label. `loop` is null outside L1; its error is part of the label.
void report_stream(benchmark::State& state, std::string label, const StreamFigures& figures,
                   const Result<MainLoop>* loop);

}  // namespace castor::bench
