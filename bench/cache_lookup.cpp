// SPDX-License-Identifier: Apache-2.0
// CacheLookup/<what>: finding what a runtime knows, by one thread and by two at once.
//
// The second thread exists while one alone is measured, too: it waits in a loop. (The C++ library
// counts references without atomic instructions as long as a process has one thread.)
// Figures of two threads need both cores: they are useless beside a build.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/two_threads.hpp"
#include "runtime/compiled.hpp"
#include "runtime/runtime_state.hpp"

namespace castor::bench {

namespace {

constexpr size_t many = 1000;

/// Look-ups that count as one repetition, so that handing work to the other thread weighs nothing
/// even in the shortest batch.
constexpr size_t lookups_at_once = 1000;

/// Functions that compute different things, in no order: conversions of tensors of rank 1, then 2.
Result<std::vector<FunctionPtr>> make_functions(size_t count) {
  std::vector<FunctionPtr> functions;
  for (int rank = 1; functions.size() < count; ++rank) {
    for (const ElementType from : all_element_types()) {
      for (const ElementType to : all_element_types()) {
        if (functions.size() == count) break;
        const Result<FunctionPtr> function = conversion(from, to, rank);
        if (!function) return function.error();
        functions.push_back(*function);
      }
    }
  }
  std::shuffle(functions.begin(), functions.end(), std::mt19937(1));
  return functions;
}

/// Looks up the first `count` things in turn. On lines of its own: what the threads read shares
/// none with what one of them writes on its stack.
template <class LookUp>
struct alignas(2 * cache_line_size) Batch {
  LookUp look_up;  ///< (thread, which): whether it succeeded
  size_t count;
  size_t lookups;
  std::atomic<bool> failed = false;

  static void run(void* context, int thread) {
    Batch& batch = *static_cast<Batch*>(context);
    const LookUp look_up = batch.look_up;
    const size_t count = batch.count;
    const size_t lookups = batch.lookups;
    bool ok = true;
    for (size_t n = 0, which = 0; n < lookups; ++n) {
      ok &= look_up(static_cast<size_t>(thread), which);
      which = which + 1 == count ? 0 : which + 1;
    }
    if (!ok) batch.failed = true;
  }
};

/// Times look-ups by one thread, and by two at once: nanoseconds of one look-up of a thread.
template <class LookUp>
Status measure(benchmark::State& state, size_t count, const LookUp& look_up) {
  TwoThreads threads;
  bool failed = false;
  const auto contender = [&](int tasks) {
    return Contender{.run = [&, tasks](size_t repetitions) {
      Batch<LookUp> batch = {look_up, count, repetitions * lookups_at_once};
      threads.run(tasks, Batch<LookUp>::run, &batch);
      failed |= batch.failed;
    }};
  };
  std::array<Contender, 2> all = {contender(1), contender(2)};
  // Batches long enough to look up everything, short enough to fit between others' time slices.
  measure_in_turn(all, {.batch_ns = 100e3, .budget_ns = 1e9});
  if (failed) return Error{ErrorCode::internal, "a look-up failed"};
  report_time(state, all[0].median_ns() / lookups_at_once);
  state.counters["two_threads_ns"] = all[1].median_ns() / lookups_at_once;
  state.counters["contention"] = median_ratio(all[1], all[0]);
  return {};
}

/// Runtime::compile of `count` functions that are known. `rebuilt`: each thread asks with equal
/// functions of its own.
Status look_up_functions(benchmark::State& state, Tier tier, size_t count, bool rebuilt) {
  const Result<Runtime> runtime = Runtime::create({.tier = tier});
  if (!runtime) return runtime.error();
  const Result<std::vector<FunctionPtr>> known = make_functions(count);
  if (!known) return known.error();
  for (const FunctionPtr& function : *known) {
    if (const auto kernel = runtime->compile(function); !kernel) return kernel.error();
  }
  std::array<std::vector<FunctionPtr>, 2> asked = {*known, *known};
  for (std::vector<FunctionPtr>& functions : asked) {
    if (!rebuilt) continue;
    Result<std::vector<FunctionPtr>> own = make_functions(count);
    if (!own) return own.error();
    functions = std::move(own).value();
  }
  Status status = measure(state, count, [&](size_t thread, size_t which) {
    return runtime->compile(asked[thread][which]).ok();
  });
  if (!status || runtime->statistics().functions == count) return status;
  return Error{ErrorCode::internal, "a known function was compiled again"};
}

/// Requests for the machine code of `count` conversions, which is known; they build the key.
Status look_up_codes(benchmark::State& state, Tier tier, size_t count) {
  const auto runtime = detail::make_runtime({.tier = tier}, jit::SystemCalls::real());
  if (!runtime) return runtime.error();
  const Result<std::vector<FunctionPtr>> functions = make_functions(count);
  if (!functions) return functions.error();
  std::vector<KernelStatePtr> kernels;
  for (const FunctionPtr& function : *functions) {
    const Result<KernelStatePtr> kernel = (*runtime)->table->get().get(function, **runtime);
    if (!kernel) return kernel.error();
    if (!(*kernel)->compiled->likely.empty()) kernels.push_back(*kernel);
  }
  if (kernels.empty()) return Error{ErrorCode::internal, "nothing was compiled"};
  CodeCache& cache = (*runtime)->store->cache;
  return measure(state, kernels.size(), [&](size_t, size_t which) {
    const detail::Compiled& compiled = *kernels[which]->compiled;
    return cache.get(compiled.nests[0], compiled.likely[0].form, compiled.target).ok();
  });
}

/// One known function, beside a thread that compiles others, for which the cache has no room.
Status look_up_beside_evictions(benchmark::State& state, Tier tier) {
  const Result<Runtime> runtime = Runtime::create({.tier = tier, .cache_bytes = size_t{128} << 10});
  if (!runtime) return runtime.error();
  const Result<std::vector<FunctionPtr>> functions = make_functions(many);
  if (!functions) return functions.error();
  std::atomic<bool> evicts = false;
  std::atomic<bool> stop = false;
  std::thread other([&] {
    for (size_t n = 0; !stop; ++n) {
      const bool now = evicts;
      if (now) (void)runtime->compile((*functions)[1 + n % (many - 1)]);
    }
  });
  const auto contender = [&](bool beside) {
    return Contender{.run = [&, beside](size_t repetitions) {
      evicts = beside;
      for (size_t n = 0; n < repetitions; ++n) (void)runtime->compile((*functions)[0]);
    }};
  };
  std::array<Contender, 2> all = {contender(false), contender(true)};
  measure_in_turn(all, {.batch_ns = 1e6, .budget_ns = 1e9});
  stop = true;
  other.join();
  report_time(state, all[1].median_ns());
  state.counters["alone_ns"] = all[0].median_ns();
  state.counters["evictions"] = static_cast<double>(runtime->statistics().function_evictions);
  return {};
}

struct Subject {
  std::string_view name;
  Status (*run)(benchmark::State& state, Tier tier);
};
constexpr std::array<Subject, 6> subjects = {{
    {"function", [](auto& state, Tier tier) { return look_up_functions(state, tier, 1, false); }},
    {"functions_1000",
     [](auto& state, Tier tier) { return look_up_functions(state, tier, many, false); }},
    // Many, since the memory that a call takes and frees may share a line with one of them.
    {"functions_1000_rebuilt",
     [](auto& state, Tier tier) { return look_up_functions(state, tier, many, true); }},
    {"code", [](auto& state, Tier tier) { return look_up_codes(state, tier, 1); }},
    {"codes_of_all_pairs",
     [](auto& state, Tier tier) {
       return look_up_codes(state, tier, value_type_count * value_type_count);
     }},
    {"function_beside_evictions", look_up_beside_evictions},
}};

}  // namespace

void register_cache_lookup(Session& session, const Selection& selected) {
  for (const Subject& subject : subjects) {
    const std::string name = fmt::format("CacheLookup/{}", subject.name);
    if (!selected(name)) continue;
    register_measured(name, [&session, subject](benchmark::State& state) {
      if (std::thread::hardware_concurrency() < 2) {
        return session.skip(state, {ErrorCode::unsupported, "there is one core only"});
      }
      if (Status status = subject.run(state, session.tier()); !status) {
        session.fail(state, status.error());
      }
    });
  }
}

}  // namespace castor::bench
