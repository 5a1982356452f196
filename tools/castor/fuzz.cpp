// SPDX-License-Identifier: Apache-2.0
// castor fuzz: random programs against the interpreter.
#include "tools/castor/number_option.hpp"
#include "tools/castor/tier_choice.hpp"
#include "tools/fuzz/run.hpp"

namespace castor::tools {

namespace {

constexpr double default_seconds = 10;
constexpr double max_seconds = 1e9;

struct FuzzCommand {
  std::optional<double> seconds;
  std::optional<uint64_t> count;
  uint64_t seed = 1;
  std::optional<TierChoice> tiers;
};

std::string names_of(const std::vector<jit::Tier>& tiers) {
  std::string names;
  for (jit::Tier tier : tiers) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", name_of(tier));
  }
  return names;
}

void print_summary(const fuzz::FuzzSummary& summary, size_t tiers) {
  const double rate =
      summary.seconds > 0 ? static_cast<double>(summary.programs) / summary.seconds : 0;
  fmt::print("coverage: {} of {} cells\n{}", summary.cells_hit, summary.cells, summary.coverage);
  fmt::print("{:.1f} seconds, {:.0f} programs per second, each on {} tier{}\n", summary.seconds,
             rate, tiers, tiers == 1 ? "" : "s");
  fmt::print("{}\n", last_line(summary));
}

Outcome fuzz(const FuzzCommand& command) {
  const Result<std::vector<jit::Tier>> tiers = chosen_tiers(command.tiers);
  if (!tiers) return failed(tiers.error());
  fuzz::FuzzOptions options;
  options.tiers = *tiers;
  options.seed = command.seed;
  options.count = command.count;
  options.seconds = command.seconds;
  if (!options.count && !options.seconds) options.seconds = default_seconds;
  options.report = [](const std::string& text) {
    fmt::print("{}\n", text);
    std::fflush(stdout);
  };
  fmt::print("seed {}, tiers {}\n", options.seed, names_of(options.tiers));
  std::fflush(stdout);
  const Result<fuzz::FuzzSummary> summary = fuzz::run_fuzzer(options);
  if (!summary) return failed(summary.error());
  print_summary(*summary, options.tiers.size());
  if (summary->mismatches == 0) return {};
  return Failure{ExitStatus::failure, fmt::format("{}, see above", last_line(*summary))};
}

}  // namespace

void add_fuzz(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("fuzz", "Compare random functions with the reference interpreter");
  auto options = std::make_shared<FuzzCommand>();
  CLI::Option* seconds = add_number_option<double>(*command, "--seconds", options->seconds, 0,
                                                   max_seconds, "S", "how long (default: 10)");
  add_number_option<uint64_t>(*command, "--count", options->count, 0, uint64_t{1} << 62, "N",
                              "how many programs, however long they take")
      ->excludes(seconds);
  add_number_option<uint64_t>(*command, "--seed", options->seed, 0, UINT64_MAX, "N",
                              "seed of the run and of its first program")
      ->default_str(std::to_string(options->seed));
  add_tier_choice(*command, options->tiers);
  command->footer(
      "A program is one function with one set of shapes, layouts, options and data; it runs on\n"
      "every tier asked for. Prints what was covered, and ends with \"N programs, M mismatches\".\n"
      "A mismatch gives a report of a minimised program and exit status 1.");
  command->callback([options, &action] { action = [options] { return fuzz(*options); }; });
}

}  // namespace castor::tools
