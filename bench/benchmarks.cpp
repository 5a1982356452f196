// SPDX-License-Identifier: Apache-2.0
#include "bench/benchmarks.hpp"

namespace castor::bench {

std::vector<ElementType> all_element_types() {
  std::vector<ElementType> types;
  for (int i = 0; i < value_type_count; ++i) types.push_back(static_cast<ElementType>(i));
  return types;
}

std::vector<TypePair> layout_pairs() {
  using enum ElementType;
  std::vector<TypePair> pairs;
  for (const TypePair& pair : {TypePair{u1_lsb_first, u1}, TypePair{u2_msb_first, u2},
                               TypePair{u3_split, u3}, TypePair{u6_split, u6}}) {
    pairs.push_back(pair);
    pairs.push_back({pair.to, pair.from});
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
