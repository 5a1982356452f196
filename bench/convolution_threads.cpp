// SPDX-License-Identifier: Apache-2.0
// ConvIntegerThreads/<layer>/<types of x and w>, with /nhwc: the same call by one thread and by
// two.
#include <fmt/format.h>

#include <array>

#include "bench/benchmarks.hpp"
#include "bench/convolution_call.hpp"
#include "bench/two_threads.hpp"

namespace castor::bench {

namespace {

Status run_case(benchmark::State& state, Session& session, const ConvolutionCase& each) {
  TwoThreads threads;
  const Result<BoundCall> by_two = prepare_convolution(session, each, &threads);
  if (!by_two) return by_two.error();
  BoundCall by_one = *by_two;
  by_one.options.executor = nullptr;
  std::array<Contender, 2> all = {by_two->contender(), by_one.contender()};
  measure_in_turn(all, session.effort(memory_of_layers));
  report_time(state, all[0].median_ns());
  state.counters["speedup"] = median_ratio(all[1], all[0]);
  state.counters["one_thread_ns"] = all[1].median_ns();
  return {};
}

}  // namespace

void register_convolution_threads(Session& session, const Selection& selected) {
  using enum ElementType;
  for (const ConvolutionLayer& layer : convolution_layers()) {
    for (const auto layout : {ConvolutionLayout::nchw, ConvolutionLayout::nhwc}) {
      const ConvolutionCase each = {layer, {.x = u8, .w = i8, .layout = layout}};
      const std::string name =
          fmt::format("ConvIntegerThreads/{}/{}", layer.name, each.variant.name());
      if (!selected(name)) continue;
      register_measured(name, [&session, each](benchmark::State& state) {
        if (std::thread::hardware_concurrency() < 2) {
          return session.skip(state, {ErrorCode::unsupported, "there is one core only"});
        }
        if (Status status = run_case(state, session, each); !status) {
          session.fail(state, status.error());
        }
      });
    }
  }
}

}  // namespace castor::bench
