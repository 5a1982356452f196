// SPDX-License-Identifier: Apache-2.0
#include "bench/stream_report.hpp"

#include "bench/benchmarks.hpp"

namespace castor::bench {

void report_stream(benchmark::State& state, std::string label, const StreamFigures& figures,
                   const Result<MainLoop>* loop) {
  report_time(state, figures.ns);
  auto& counters = state.counters;
  counters["GBps"] = figures.bytes / figures.ns;
  counters["plain_GBps"] = figures.bytes / figures.ns / figures.stream_fraction;
  counters["stream_fraction"] = figures.stream_fraction;
  counters["GHz"] = figures.gigahertz;
  label += "plain " + figures.plain_name;
  if (loop != nullptr && *loop) {
    const PortBound& bound = (*loop)->bound;
    counters["cycles_per_element"] = figures.cycles_per_element;
    counters["model_cycles_per_element"] = bound.cycles_per_element;
    counters["port_fraction"] = bound.cycles_per_element / figures.cycles_per_element;
    label += "; limit " + bound.limited_by;
  } else if (loop != nullptr) {
    label += "; no port model: " + loop->error().message;
  }
  state.SetLabel(label);
}

}  // namespace castor::bench
