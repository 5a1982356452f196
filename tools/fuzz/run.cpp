// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/run.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>

#include "tools/fuzz/child.hpp"
#include "tools/fuzz/generate.hpp"
#include "tools/fuzz/minimise.hpp"
#include "tools/fuzz/planned_lanes.hpp"
#include "tools/fuzz/random.hpp"
#include "tools/fuzz/record.hpp"
#include "tools/fuzz/report.hpp"
#include "tools/fuzz/shared_state.hpp"

namespace castor::fuzz {

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t directed_period = 4;  // one in this number of programs is made for a cell
constexpr uint64_t alarm_period = 64;    // programs between two calls of keep_alive
constexpr unsigned child_seconds = 60;   // for that many programs

enum WorkerStatus : int { finished, found, cannot_run };

/// The programs of a run, in a child. Every program's seed is left in the shared progress before it
/// runs, so that the parent knows it whatever happens.
class Worker {
 public:
  Worker(const FuzzOptions& options, Progress& progress, Coverage coverage)
      : options_(options), progress_(progress), coverage_(coverage) {}

  int run() {
    Result<Executor> executor = Executor::create(options_.tiers, options_.tamper);
    if (!executor) return cannot_run;
    const Clock::time_point begin = Clock::now();
    const double spent = progress_.seconds;
    while (!is_over()) {
      if (progress_.next % alarm_period == 0) keep_alive(child_seconds);
      progress_.finding = run_program(*executor);
      progress_.seconds = spent + std::chrono::duration<double>(Clock::now() - begin).count();
      ++progress_.programs;
      if (progress_.finding) ++progress_.mismatches;
      if (progress_.finding && !progress_.only_counts) return found;
      ++progress_.next;
    }
    return finished;
  }

 private:
  bool is_over() const {
    return (options_.count && progress_.next >= *options_.count) ||
           (options_.seconds && progress_.seconds >= *options_.seconds);
  }

  /// The seed of the next program: of a cell that was not hit, or when all were, of any cell; or of
  /// a random program.
  uint64_t next_seed() {
    const uint64_t seed = program_seed(options_.seed, progress_.next);
    if (progress_.next % directed_period != 1) return seed;
    const std::optional<size_t> missing = coverage_.next_missing(progress_.cursor);
    if (!missing) return directed_seed(mix(seed) % cell_count(), seed);
    progress_.cursor = *missing + 1;
    return directed_seed(*missing, seed);
  }

  Finding run_program(Executor& executor) {
    progress_.tier = Progress::no_tier;
    progress_.seed = next_seed();
    const Result<Prepared> prepared = prepare(generate(progress_.seed));
    if (!prepared) {
      Finding finding{.kind = Finding::Kind::unprepared};
      prepared.error().message.copy(finding.message, sizeof finding.message - 1);
      return finding;
    }
    const ProgramRecord record(*prepared);
    for (size_t tier = 0; tier < options_.tiers.size(); ++tier) {
      progress_.tier = tier;
      CallTrace trace;
      const Finding finding = executor.run(*prepared, tier, trace);
      if (finding) return finding;
      record.mark(coverage_, tier, trace);
    }
    return {};
  }

  const FuzzOptions& options_;
  Progress& progress_;
  Coverage coverage_;
};

/// Starts children until the run is over, and reports what they find.
class Run {
 public:
  explicit Run(const FuzzOptions& options)
      : options_(options),
        marks_(Coverage::bytes(options.tiers)),
        coverage_(marks_.bytes(), options.tiers) {}

  Result<FuzzSummary> take() {
    Worker worker(options_, *progress_, coverage_);
    while (true) {
      const Result<ChildEnd> end = run_in_child([&] { return worker.run(); }, child_seconds);
      if (!end) return end.error();
      if (end->signal == 0 && end->status == finished) return summary();
      if (end->signal == 0 && end->status != found) return cannot_go_on();
      if (is_stopped(end->signal)) return interrupted();
      if (end->signal != 0) note_crash(end->signal);
      report_finding();
      ++progress_->next;
    }
  }

 private:
  static bool is_stopped(int signal) {
    return signal == SIGINT || signal == SIGTERM || signal == SIGKILL || signal == SIGHUP;
  }

  void note_crash(int signal) {
    Finding& finding = progress_->finding;
    finding = {.kind = Finding::Kind::crash, .tier = progress_->tier, .signal = signal};
    if (progress_->tier == Progress::no_tier) {
      finding = {.kind = Finding::Kind::unprepared};
      const std::string text = fmt::format("ended by {}", name_of_signal(signal));
      text.copy(finding.message, sizeof finding.message - 1);
    }
    ++progress_->programs;
    ++progress_->mismatches;
  }

  void report_finding() {
    progress_->only_counts = progress_->mismatches >= options_.max_reports;
    if (progress_->mismatches > options_.max_reports || !options_.report) return;
    const Mismatch mismatch =
        minimise(generate(progress_->seed), progress_->finding, options_.tiers, options_.tamper);
    options_.report(report(mismatch, {options_.seed, progress_->next, options_.tiers}));
  }

  Error cannot_go_on() const {
    return {ErrorCode::out_of_memory,
            "the fuzzer's process could not make its runtimes and buffers, or ran out of memory"};
  }
  Error interrupted() const { return {ErrorCode::internal, "the fuzzer's process was stopped"}; }

  FuzzSummary summary() {
    const Coverage::Count all = coverage_.count();
    return {progress_->programs,
            progress_->mismatches,
            progress_->seconds,
            coverage_.print(),
            all.hit,
            all.cells};
  }

  const FuzzOptions& options_;
  Shared<Progress> progress_;
  SharedMemory marks_;
  Coverage coverage_;
};

/// Machine code must run at all, else there is nothing to compare.
Status check_tiers(const std::vector<Tier>& tiers) {
  FunctionBuilder builder("probe");
  builder.result(builder.convert(builder.parameter("x", {ElementType::u8, {}}), ElementType::f32));
  const Result<FunctionPtr> function = builder.finish();
  if (!function) return function.error();
  for (Tier tier : tiers) {
    const Result<Runtime> runtime = Runtime::create({.tier = tier});
    if (!runtime) return runtime.error();
    const Result<Kernel> kernel = runtime->compile(*function);
    if (!kernel) return kernel.error();
    if (kernel->engine() == Engine::jit) continue;
    return Error{ErrorCode::unsupported,
                 fmt::format("functions run in the interpreter on {}, so there is nothing to "
                             "compare: {}",
                             name_of(tier), kernel->engine_reason())};
  }
  return {};
}

}  // namespace

Result<FuzzSummary> run_fuzzer(const FuzzOptions& options) {
  if (Status status = check_tiers(options.tiers); !status) return status.error();
  for (Tier tier : options.tiers) reachable_lanes(tier);  // once, not in every child
  return Run(options).take();
}

std::string last_line(const FuzzSummary& summary) {
  return fmt::format("{} programs, {} mismatches", summary.programs, summary.mismatches);
}

}  // namespace castor::fuzz
