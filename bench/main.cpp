// SPDX-License-Identifier: Apache-2.0
// castor-bench: how fast conversions run, how long compiling takes, what a call costs.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <regex>

#include "bench/benchmarks.hpp"
#include "bench/options.hpp"
#include "bench/reporters.hpp"

namespace castor::bench {

std::vector<ElementType> implemented_types() {
  std::vector<ElementType> types;
  for (const ElementInfo& row : element_table) {
    if (row.implemented) types.push_back(row.type);
  }
  return types;
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

namespace {

/// Selects by --benchmark_filter, as Google Benchmark does, but by the plain names.
Selection selection_of(std::string filter) {
  if (filter.empty() || filter == "all") filter = ".";
  const bool inverted = filter.front() == '-';
  if (inverted) filter.erase(0, 1);
  const std::regex expression(filter);
  return [expression, inverted](const std::string& name) {
    return std::regex_search(name, expression) != inverted;
  };
}

void describe(const Session& session) {
  benchmark::AddCustomContext("castor_version", std::string(version()));
  benchmark::AddCustomContext("castor_tier", std::string(name_of(session.tier())));
  benchmark::AddCustomContext("castor_cpu", jit::host().cpu);
  benchmark::AddCustomContext("castor_clock_ghz", fmt::format("{:.3f}", session.clock().measure()));
}

void run_selected(const Options& options) {
  const auto text = make_text_reporter();
  const auto json = make_json_reporter();
  const auto file = make_json_reporter();
  const bool own_file = options.writes_file && options.file_is_json;
  benchmark::RunSpecifiedBenchmarks(options.displays_text ? text.get() : json.get(),
                                    own_file ? file.get() : nullptr, ".");
}

int run(int argc, char** argv) {
  Result<Options> options = read_options(argc, argv);
  if (!options) {
    fmt::print(stderr, "castor-bench: {}\n", options.error().to_string());
    return 2;
  }
  int remaining = static_cast<int>(options->remaining.size());
  benchmark::Initialize(&remaining, options->remaining.data());
  if (benchmark::ReportUnrecognizedArguments(remaining, options->remaining.data())) return 2;
  const auto session = Session::open(*options);
  if (!session) {
    fmt::print(stderr, "castor-bench: {}\n", session.error().to_string());
    return 1;
  }
  try {
    const Selection selected = selection_of(benchmark::GetBenchmarkFilter());
    register_convert(**session, selected);
    register_convert_special(**session, selected);
    register_compile(**session, selected);
    register_call(**session, selected);
  } catch (const std::regex_error& error) {
    fmt::print(stderr, "castor-bench: --benchmark_filter: {}\n", error.what());
    return 2;
  }
  describe(**session);
  run_selected(*options);
  benchmark::Shutdown();
  return (*session)->failed() ? 1 : 0;
}

}  // namespace
}  // namespace castor::bench

int main(int argc, char** argv) { return castor::bench::run(argc, argv); }
