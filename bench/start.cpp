// SPDX-License-Identifier: Apache-2.0
// Start/<what>: how long it takes until functions can be compiled. Times are medians.
#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "bench/benchmarks.hpp"
#include "bench/distribution.hpp"
#include "bench/start.hpp"

namespace castor::bench {

namespace {

using Times = Result<std::vector<double>>;

Result<double> time_creation() {
  const double begin = now_ns();
  const Result<Runtime> runtime = Runtime::create();
  const double nanoseconds = now_ns() - begin;
  if (!runtime) return runtime.error();
  return nanoseconds;
}

/// In a process that has made runtimes before; each is ended before the next one is made.
Times times_of_runtimes() {
  constexpr int samples = 1000;
  std::vector<double> times;
  for (int i = 0; i < samples; ++i) {
    const Result<double> time = time_creation();
    if (!time) return time.error();
    times.push_back(*time);
  }
  return times;
}

/// What a process of this program prints that makes one runtime.
Result<double> time_in_new_process() {
  const std::string command = fmt::format("/proc/{}/exe {}", ::getpid(), first_runtime_option);
  const std::unique_ptr<FILE, int (*)(FILE*)> output(::popen(command.c_str(), "r"), ::pclose);
  double nanoseconds = 0;
  if (output == nullptr || std::fscanf(output.get(), "%lf", &nanoseconds) != 1) {
    return Error{ErrorCode::io, fmt::format("'{}' prints no time", command)};
  }
  return nanoseconds;
}

Times times_of_first_runtimes() {
  constexpr int processes = 25;
  std::vector<double> times;
  for (int i = 0; i < processes; ++i) {
    const Result<double> time = time_in_new_process();
    if (!time) return time.error();
    times.push_back(*time);
  }
  return times;
}

struct Subject {
  std::string_view name;
  Times (*times)();
};
constexpr Subject subjects[] = {
    {"runtime", times_of_runtimes},
    {"first_runtime", times_of_first_runtimes},
};

}  // namespace

int print_first_runtime() {
  const Result<double> time = time_creation();
  if (!time) {
    fmt::print(stderr, "castor-bench: {}\n", time.error().to_string());
    return 1;
  }
  fmt::print("{}\n", *time);
  return 0;
}

void register_start(Session& session, const Selection& selected) {
  for (const Subject& subject : subjects) {
    const std::string name = fmt::format("Start/{}", subject.name);
    if (!selected(name)) continue;
    register_measured(name, [&session, subject](benchmark::State& state) {
      const Times times = subject.times();
      if (!times) return session.fail(state, times.error());
      report_distribution(state, distribution_of(*times));
    });
  }
}

}  // namespace castor::bench
