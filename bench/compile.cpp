// SPDX-License-Identifier: Apache-2.0
// Compile/<what>/<cold or hit>/<idle or busy>. Times are medians.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <random>

#include "bench/benchmarks.hpp"
#include "bench/distribution.hpp"
#include "bench/other_core.hpp"

namespace castor::bench {

namespace {

using enum ElementType;

constexpr size_t cold_samples = 1000;
constexpr size_t warming_functions = 4;
constexpr std::array<TypePair, 6> timed_pairs = {
    {{f32, u8}, {f64, i8}, {f32, f16}, {u8, f32}, {i32, i16}, {f32, bf16}}};

/// Nanoseconds of each compile, one after the other.
using Times = Result<std::vector<double>>;

Result<double> time_compile(const Runtime& runtime, const FunctionPtr& function) {
  const double begin = now_ns();
  const Result<Kernel> kernel = runtime.compile(function);
  const double elapsed = now_ns() - begin;
  if (!kernel) return kernel.error();
  return elapsed;
}

Result<std::vector<FunctionPtr>> all_conversions() {
  std::vector<FunctionPtr> functions;
  for (const ElementType from : all_element_types()) {
    for (const ElementType to : all_element_types()) {
      const Result<FunctionPtr> function = conversion(from, to);
      if (!function) return function.error();
      functions.push_back(*function);
    }
  }
  return functions;
}

/// A runtime that has compiled a few functions other than `unseen`: its first pages of code
/// memory are mapped and touched.
Result<Runtime> warmed_runtime(Tier tier, std::span<const FunctionPtr> others,
                               const FunctionPtr& unseen) {
  Result<Runtime> runtime = Runtime::create({.tier = tier});
  if (!runtime) return runtime;
  size_t compiled = 0;
  for (const FunctionPtr& other : others) {
    if (compiled == warming_functions) break;
    if (same_computation(*other, *unseen)) continue;
    if (const auto kernel = runtime->compile(other); !kernel) return kernel.error();
    ++compiled;
  }
  return runtime;
}

/// One function, each time in a fresh runtime with warm code memory.
Times cold_times(Tier tier, const FunctionPtr& function) {
  const Result<std::vector<FunctionPtr>> others = all_conversions();
  if (!others) return others.error();
  std::vector<double> times;
  while (times.size() < cold_samples) {
    const Result<Runtime> runtime = warmed_runtime(tier, *others, function);
    if (!runtime) return runtime.error();
    const Result<double> time = time_compile(*runtime, function);
    if (!time) return time.error();
    times.push_back(*time);
  }
  return times;
}

/// All conversions in shuffled order, in one runtime for each round: code memory grows as it must.
Times cold_times_of_all(Tier tier) {
  Result<std::vector<FunctionPtr>> functions = all_conversions();
  if (!functions) return functions.error();
  std::mt19937 random(1);
  std::vector<double> times;
  while (times.size() < cold_samples) {
    std::shuffle(functions->begin(), functions->end(), random);
    const Result<Runtime> runtime = Runtime::create({.tier = tier});
    if (!runtime) return runtime.error();
    for (size_t i = 0; i < functions->size(); ++i) {
      const Result<double> time = time_compile(*runtime, (*functions)[i]);
      if (!time) return time.error();
      if (i >= warming_functions) times.push_back(*time);
    }
  }
  return times;
}

/// Finds `asked`, which computes what `known` does, in a runtime that has seen `known`.
Times hit_times(Tier tier, const FunctionPtr& known, const FunctionPtr& asked) {
  const Result<Runtime> runtime = Runtime::create({.tier = tier});
  if (!runtime) return runtime.error();
  if (const auto kernel = runtime->compile(known); !kernel) return kernel.error();
  const Contender hits = {.run = [&](size_t repetitions) {
    for (size_t i = 0; i < repetitions; ++i) static_cast<void>(runtime->compile(asked).ok());
  }};
  std::vector<double> times = sample_batches(hits, distribution_effort);
  if (runtime->statistics().functions != 1) {
    return Error{ErrorCode::internal, "a hit compiled its function again"};
  }
  return times;
}

/// One thing to compile: its name, and its times on a tier.
struct Subject {
  std::string name;  ///< "f32_u8/cold"
  std::function<Times(Tier)> times;
};

/// Makes the function when it is measured; both makers give the same computation.
using Maker = std::function<Result<FunctionPtr>()>;

Subject cold(const std::string& name, const Maker& make) {
  return {name + "/cold", [make](Tier tier) -> Times {
            const Result<FunctionPtr> function = make();
            if (!function) return function.error();
            return cold_times(tier, *function);
          }};
}

/// `rebuilt`: asks with an equal function that was built again.
Subject hit(const std::string& name, const Maker& make, bool rebuilt) {
  return {name + (rebuilt ? "_rebuilt/hit" : "/hit"), [make, rebuilt](Tier tier) -> Times {
            const Result<FunctionPtr> known = make();
            if (!known) return known.error();
            const Result<FunctionPtr> asked = rebuilt ? make() : known;
            if (!asked) return asked.error();
            return hit_times(tier, *known, *asked);
          }};
}

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const TypePair& pair : timed_pairs) {
    all.push_back(cold(pair.name(), [pair] { return conversion(pair.from, pair.to); }));
  }
  all.push_back({"all_pairs/cold", cold_times_of_all});
  all.push_back(cold("10_ops", ten_conversions));
  all.push_back(cold("10_elementwise_ops", ten_elementwise_ops));
  const Maker one_op = [] { return conversion(f32, u8); };
  const Maker constant_4KiB = [] { return converted_constant(size_t{4} << 10); };
  const Maker constant_1MiB = [] { return converted_constant(size_t{1} << 20); };
  for (const bool rebuilt : {false, true}) {
    all.push_back(hit("f32_u8", one_op, rebuilt));
    all.push_back(hit("constant_4KiB", constant_4KiB, rebuilt));
    all.push_back(hit("constant_1MiB", constant_1MiB, rebuilt));
    all.push_back(hit("10_ops", ten_conversions, rebuilt));
  }
  return all;
}

void run_subject(benchmark::State& state, Session& session, const Subject& subject,
                 OtherCore other) {
  const auto cores = OccupiedCore::start(other);
  if (!cores) return session.skip(state, cores.error());
  const Times times = subject.times(session.tier());
  if (!times) return session.fail(state, times.error());
  report_distribution(state, distribution_of(*times));
}

}  // namespace

void register_compile(Session& session, const Selection& selected) {
  for (const Subject& subject : subjects()) {
    for (const OtherCore other : {OtherCore::idle, OtherCore::busy}) {
      const std::string name = fmt::format("Compile/{}/{}", subject.name, name_of(other));
      if (!selected(name)) continue;
      register_measured(name, [&session, subject, other](benchmark::State& state) {
        run_subject(state, session, subject, other);
      });
    }
  }
}

}  // namespace castor::bench
