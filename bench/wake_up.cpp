// SPDX-License-Identifier: Apache-2.0
// WakeUp/<executor>/<KiB>: where two threads begin to win, after a pause in which a pool's threads
// go to sleep. The executors split whatever they are given.
#include <fmt/format.h>

#include <castor/thread_pool.hpp>

#include <thread>

#include "bench/benchmarks.hpp"
#include "bench/data.hpp"
#include "bench/two_threads.hpp"

namespace castor::bench {

namespace {

constexpr TypePair pair = {ElementType::f32, ElementType::i8};
constexpr int64_t sizes_kib[] = {64, 128, 256, 512, 1024, 2048, 4096};
constexpr double pause_ns = 300e3;

/// Another executor, of two tasks, which wakes up in no time, as far as it says.
class Eager : public Executor {
 public:
  explicit Eager(std::shared_ptr<Executor> by) : by_(std::move(by)) {}
  int tasks() const override { return 2; }
  int64_t wake_up_ns() const override { return 0; }
  void run(int count, void (*task)(void* context, int index), void* context) override {
    by_->run(count, task, context);
  }

 private:
  std::shared_ptr<Executor> by_;
};

struct Cell {
  bool spins;  ///< else it is the pool of castor::threads
  int64_t kib;
  std::string name() const { return fmt::format("WakeUp/{}/{}", spins ? "spinning" : "pool", kib); }
};

double time_after_pause(const BoundCall& call) {
  const double until = now_ns() + pause_ns;
  while (now_ns() < until) {
  }
  const double begin = now_ns();
  static_cast<void>(call.run());
  return now_ns() - begin;
}

Result<std::shared_ptr<Executor>> executor_of(const Cell& cell) {
  if (cell.spins) return std::shared_ptr<Executor>(std::make_shared<TwoThreads>());
  return make_thread_pool(2);
}

Status run_cell(benchmark::State& state, Session& session, const Cell& cell) {
  const Result<std::shared_ptr<Executor>> executor = executor_of(cell);
  if (!executor) return executor.error();
  const Footprint footprint = {"", static_cast<size_t>(cell.kib) << 10, false};
  const Result<Workspace> tensors = session.workspace(pair, footprint);
  if (!tensors) return tensors.error();
  fill(tensors->source, ordinary_tile(pair.from, pair.to, tile_elements));
  const Result<BoundCall> alone = bind_conversion(session.runtime(), pair, *tensors);
  if (!alone) return alone.error();
  Eager eager(*executor);
  BoundCall split = *alone;
  split.options.executor = &eager;
  std::vector<double> one;
  std::vector<double> two;
  for (int i = 0; i < 300; ++i) {
    one.push_back(time_after_pause(*alone));
    two.push_back(time_after_pause(split));
  }
  const double one_ns = median_of(std::move(one));
  const double two_ns = median_of(std::move(two));
  report_time(state, two_ns);
  state.counters["one_thread_ns"] = one_ns;
  state.counters["speedup"] = one_ns / two_ns;
  state.counters["wake_up_ns"] = two_ns - one_ns / 2;
  return {};
}

}  // namespace

void register_wake_up(Session& session, const Selection& selected) {
  std::vector<Cell> cells;
  for (const int64_t kib : sizes_kib) {
    cells.push_back({true, kib});
    cells.push_back({false, kib});
  }
  register_cells(session, selected, cells, run_cell);
}

}  // namespace castor::bench
