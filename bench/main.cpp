// SPDX-License-Identifier: Apache-2.0
// castor-bench: how fast conversions, elementwise functions and convolutions run, how long
// compiling takes, what a look-up and a call cost.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>

#include "bench/benchmarks.hpp"
#include "bench/options.hpp"
#include "bench/reporters.hpp"
#include "bench/start.hpp"
#include "jit/listing/listing.hpp"

namespace castor::bench {

namespace {

void describe(const Session& session) {
  benchmark::AddCustomContext("castor_version", std::string(version()));
  benchmark::AddCustomContext("castor_tier", std::string(name_of(session.tier())));
  // No error: the session has runtimes.
  const auto choice = jit::choose_core({}, jit::host().identity, std::getenv("CASTOR_CORE"));
  const jit::Core core = choice->core;
  benchmark::AddCustomContext("castor_core", fmt::format("{} ({})", name_of(core), choice->reason));
  benchmark::AddCustomContext("castor_port_model",
                              std::string(name_of(jit::port_model_of(core, jit::host().identity))));
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
  if (argc == 2 && argv[1] == first_runtime_option) return print_first_runtime();
  Result<Options> options = read_options(argc, argv);
  if (!options) {
    fmt::print(stderr, "castor-bench: {}\n", options.error().to_string());
    return 2;
  }
  int remaining = static_cast<int>(options->remaining.size());
  benchmark::Initialize(&remaining, options->remaining.data());
  if (benchmark::ReportUnrecognizedArguments(remaining, options->remaining.data())) return 2;
  const Result<Selection> selected = Selection::parse(benchmark::GetBenchmarkFilter());
  if (!selected) {
    fmt::print(stderr, "castor-bench: {}\n", selected.error().to_string());
    return 2;
  }
  const auto session = Session::open(*options);
  if (!session) {
    fmt::print(stderr, "castor-bench: {}\n", session.error().to_string());
    return 1;
  }
  register_convert(**session, *selected);
  register_convert_special(**session, *selected);
  register_elementwise(**session, *selected);
  register_sub_byte_views(**session, *selected);
  register_convolution(**session, *selected);
  register_matmul(**session, *selected);
  register_look_up(**session, *selected);
  register_reduction(**session, *selected);
  register_quantized_layer(**session, *selected);
  register_requantize(**session, *selected);
  register_convolution_threads(**session, *selected);
  register_convert_threads(**session, *selected);
  register_requantize_threads(**session, *selected);
  register_wake_up(**session, *selected);
  register_compile(**session, *selected);
  register_compile_convolution(**session, *selected);
  register_compile_growth(**session, *selected);
  register_cache_lookup(**session, *selected);
  register_call(**session, *selected);
  register_start(**session, *selected);
  if (selected->count() == 0) {
    fmt::print(stderr, "castor-bench: --benchmark_filter '{}' matches no benchmark\n",
               benchmark::GetBenchmarkFilter());
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
