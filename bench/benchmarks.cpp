// SPDX-License-Identifier: Apache-2.0
#include "bench/benchmarks.hpp"

namespace castor::bench {

std::vector<ElementType> all_element_types() { return {value_types.begin(), value_types.end()}; }

std::vector<TypePair> layout_pairs() {
  std::vector<TypePair> pairs;
  for (ElementType layout : older_layouts) {
    pairs.push_back({layout, value_type(layout)});
    pairs.push_back({value_type(layout), layout});
  }
  return pairs;
}

void register_measured(const std::string& name, std::function<void(benchmark::State&)> run) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(run))
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kNanosecond);
}

void report_time(benchmark::State& state, double nanoseconds) {
  for ([[maybe_unused]] auto _ : state) state.SetIterationTime(nanoseconds * 1e-9);
}

void report_distribution(benchmark::State& state, const Distribution& nanoseconds) {
  report_time(state, nanoseconds.median);
  state.counters["min_ns"] = nanoseconds.min;
  state.counters["median_ns"] = nanoseconds.median;
  state.counters["p90_ns"] = nanoseconds.p90;
}

}  // namespace castor::bench
