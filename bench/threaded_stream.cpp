// SPDX-License-Identifier: Apache-2.0
#include "bench/threaded_stream.hpp"

#include <memory>

#include "bench/benchmarks.hpp"
#include "bench/two_threads.hpp"

namespace castor::bench {

namespace {

/// One half of the tensors, cut at a cache line.
PlainTensors half_of(const PlainTensors& tensors, bool second) {
  const auto half = [&](auto tensor) {
    const size_t middle = tensor.size() / 2 / 64 * 64;
    return second ? tensor.subspan(middle) : tensor.first(middle);
  };
  PlainTensors part;
  for (const auto& source : tensors.sources) part.sources.push_back(half(source));
  part.destination = half(tensors.destination);
  return part;
}

/// A plain kernel on both halves at the same time.
class PlainByTwo {
 public:
  PlainByTwo(TwoThreads& threads, const PlainKernel& kernel, const PlainTensors& tensors)
      : halves_{half_of(tensors, false), half_of(tensors, true)},
        parts_{kernel.contender(halves_[0]), kernel.contender(halves_[1])},
        threads_(threads) {
    for (const PlainTensors& half : halves_) {
      fraction_ += kernel.fraction(half) * static_cast<double>(half.bytes()) /
                   static_cast<double>(tensors.bytes());
    }
  }

  /// The fraction of the tensors' bytes that it moves.
  double fraction() const { return fraction_; }
  Contender contender() {
    return {.run = [this](size_t repetitions) {
      const auto run_half = [](void* context, int index) {
        static_cast<PlainByTwo*>(context)->parts_[static_cast<size_t>(index)].run(1);
      };
      for (size_t i = 0; i < repetitions; ++i) threads_.run(2, run_half, this);
    }};
  }

 private:
  std::array<PlainTensors, 2> halves_;
  std::array<Contender, 2> parts_;
  TwoThreads& threads_;
  double fraction_ = 0;
};

}  // namespace

ThreadedFigures measure_by_two(Session& session, const BoundCall& call, const Streams& streams,
                               const Footprint& footprint, const PlainTensors& tensors) {
  TwoThreads threads;
  BoundCall by_two = call;
  by_two.options.executor = &threads;
  std::vector<Contender> all = {by_two.contender(), call.contender()};
  std::vector<std::unique_ptr<PlainByTwo>> plain;
  const auto kernels =
      session.plain_kernels().fastest(streams, {footprint.bytes, footprint.in_memory}, tensors);
  for (const auto& kernel : kernels) {
    plain.push_back(std::make_unique<PlainByTwo>(threads, *kernel, tensors));
    all.push_back(plain.back()->contender());
    all.push_back(kernel->contender(tensors));
  }
  measure_in_turn(all, session.effort(footprint));

  const auto time = [&](size_t i) { return all[2 + 2 * i].median_ns() / plain[i]->fraction(); };
  size_t best = 0;
  for (size_t i = 1; i < plain.size(); ++i) {
    if (time(i) < time(best)) best = i;
  }
  return {.ns = all[0].median_ns(),
          .one_thread_ns = all[1].median_ns(),
          .speedup = median_ratio(all[1], all[0]),
          .stream_fraction = median_ratio(all[2 + 2 * best], all[0]) / plain[best]->fraction(),
          .plain_speedup = median_ratio(all[3 + 2 * best], all[2 + 2 * best]),
          .bytes = static_cast<double>(tensors.bytes()),
          .plain_name = kernels[best]->variant().name()};
}

void report_by_two(benchmark::State& state, const ThreadedFigures& figures) {
  report_time(state, figures.ns);
  state.counters["GBps"] = figures.bytes / figures.ns;
  state.counters["one_thread_ns"] = figures.one_thread_ns;
  state.counters["speedup"] = figures.speedup;
  state.counters["stream_fraction"] = figures.stream_fraction;
  state.counters["plain_speedup"] = figures.plain_speedup;
  state.SetLabel("plain " + figures.plain_name);
}

}  // namespace castor::bench
