// SPDX-License-Identifier: Apache-2.0
// castor-sweep: measures every candidate of every convolution of a set, and writes one line for
// each to standard output: the case, the candidate, cycles by the cost model, cycles measured, and
// how often each event of the cost model happens. A summary of how good the choice was goes to
// standard error. `tools/fit-convolution-costs` reads the lines.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "bench/core_clock.hpp"
#include "bench/sweep/candidate_run.hpp"
#include "bench/sweep/sweep_case.hpp"
#include "jit/memory/system_memory.hpp"
#include "jit/tile_permission.hpp"
#include "runtime/cache/code_store.hpp"

namespace castor::bench {
namespace {

struct SweepOptions {
  bool layers = false;
  bool tiles = false;
  int random = 0;
  uint64_t seed = 1;
  double milliseconds = 20;
  std::string matching;
  std::string isa;
};

/// How much slower the chosen candidate is than the fastest one, by case.
struct Regret {
  std::string name;
  double ratio = 1;
  std::string chosen;
  std::string fastest;
};

std::string events_of(const jit::EventCounts& cost) {
  std::string text;
  for (const jit::CostEventInfo& info : jit::cost_event_table) {
    if (cost[info.event] == 0) continue;
    text += fmt::format("{}{}={:.6g}", text.empty() ? "" : " ", info.name, cost[info.event]);
  }
  return text;
}

std::string text_of(const jit::Candidate& candidate) {
  const auto* plan = std::get_if<jit::DensePlan>(&candidate.plan);
  if (plan == nullptr) return name_of(candidate);
  const bool pixels = plan->is_pixel_vectorised();
  const jit::DenseTile& tile = plan->tile;
  return fmt::format("{} {}x{}{}{}", name_of(candidate), tile.channels,
                     pixels ? tile.vectors : tile.pixels(), tile.row_pitch > 0 ? " one line" : "",
                     tile.channels_inside ? " inside" : "");
}

/// The candidates, with some other register tiles of each where they are to be measured.
std::vector<jit::Candidate> contenders_of(const jit::ConvolutionProblem& problem,
                                          const jit::Target& target, bool tiles) {
  std::vector<jit::Candidate> all = jit::candidates(problem, target);
  if (!tiles) return all;
  constexpr size_t max_tiles = 6;
  const auto add_some = [&](auto others) {
    const size_t step = std::max<size_t>(others.size() / max_tiles, 1);
    for (size_t k = step / 2; k < others.size(); k += step) {
      all.push_back(jit::candidate_of(std::move(others[k]), problem, target));
    }
  };
  for (size_t i = all.size(); i-- > 0;) {
    if (const auto* plan = std::get_if<jit::DensePlan>(&all[i].plan)) {
      add_some(with_other_tiles(*plan, target));
    } else if (const auto* rows = std::get_if<jit::WeightRowsPlan>(&all[i].plan)) {
      add_some(with_other_tiles(*rows, target));
    }
  }
  return all;
}

/// Measures the candidates of one case in turn and writes their lines.
Result<Regret> sweep(const SweepCase& each, const jit::Target& target, CodeCache& cache,
                     const SweepOptions& options) {
  const std::vector<jit::Candidate> all = contenders_of(each.problem, target, options.tiles);
  const SweepConstants constants(each.problem);
  std::vector<CandidateRun> runs;
  size_t scratch_bytes = 0;
  for (const jit::Candidate& candidate : all) {
    Result<CandidateRun> run =
        CandidateRun::bind(each.problem, candidate, target, constants, cache);
    if (!run.ok()) return run.error();
    runs.push_back(std::move(run).value());
    scratch_bytes = std::max(scratch_bytes, runs.back().scratch_bytes());
  }
  const Result<SweepTensors> tensors = SweepTensors::make(each.problem, scratch_bytes);
  if (!tensors.ok()) return tensors.error();
  const CoreClock clock;
  std::vector<Contender> contenders = {clock.contender()};
  for (const CandidateRun& run : runs) contenders.push_back(run.contender(*tensors));
  measure_in_turn(contenders, {.batch_ns = 20e3, .budget_ns = options.milliseconds * 1e6});
  const double gigahertz = CoreClock::gigahertz(contenders[0]);
  const auto images = static_cast<double>(each.problem.geometry.batch);
  std::vector<double> cycles;
  for (size_t i = 0; i < all.size(); ++i) {
    cycles.push_back(contenders[i + 1].median_ns() * gigahertz / images);
    fmt::print("{},{},{:.0f},{:.0f},{}\n", each.name, text_of(all[i]), all[i].cycles, cycles.back(),
               events_of(all[i].cost));
  }
  const auto fastest = static_cast<size_t>(std::ranges::min_element(cycles) - cycles.begin());
  return Regret{each.name, cycles[0] / cycles[fastest], text_of(all[0]), text_of(all[fastest])};
}

void print_summary(std::vector<Regret> all) {
  const auto within = [&](double ratio) {
    const auto count =
        std::ranges::count_if(all, [&](const Regret& regret) { return regret.ratio <= ratio; });
    return 100 * static_cast<double>(count) / static_cast<double>(all.size());
  };
  std::cerr << fmt::format("{} cases; within 10 %: {:.1f} %; within 30 %: {:.1f} %\n", all.size(),
                           within(1.1), within(1.3));
  std::ranges::sort(all, std::ranges::greater{}, &Regret::ratio);
  for (const Regret& regret : all) {
    if (regret.ratio <= 1.1) break;
    std::cerr << fmt::format("{:.2f} {}: {} chosen, {} is the fastest\n", regret.ratio, regret.name,
                             regret.chosen, regret.fastest);
  }
}

Status run(const SweepOptions& options) {
  std::optional<jit::Tier> tier;
  if (!options.isa.empty()) {
    tier = jit::tier_named(options.isa);
    if (!tier) return Error{ErrorCode::invalid_argument, "unknown tier " + options.isa};
  }
  Result<jit::Target> target = jit::choose_target(tier);
  if (!target.ok()) return target.error();
  const jit::PermittedTier permitted = jit::permitted_tier(target->tier);
  if (!permitted.lower_because.empty()) std::cerr << permitted.lower_because << "\n";
  target->tier = permitted.tier;
  std::vector<SweepCase> cases = random_cases(options.seed, options.random);
  if (options.layers) std::ranges::move(layer_cases(), std::back_inserter(cases));
  std::erase_if(cases, [&](const SweepCase& each) {
    return each.name.find(options.matching) == std::string::npos;
  });
  detail::CodeStore store(jit::SystemCalls::real(), size_t{256} << 20);
  std::vector<Regret> regrets;
  fmt::print("case,candidate,model_cycles,measured_cycles,events\n");
  for (const SweepCase& each : cases) {
    Result<Regret> regret = sweep(each, *target, store.cache, options);
    if (!regret.ok()) {
      return Error{regret.error().code, each.name + ": " + regret.error().message};
    }
    regrets.push_back(std::move(regret).value());
  }
  if (!regrets.empty()) print_summary(std::move(regrets));
  return {};
}

}  // namespace
}  // namespace castor::bench

int main(int argc, char** argv) {
  castor::bench::SweepOptions options;
  CLI::App app("Measures every candidate of convolutions.");
  app.add_flag("--layers", options.layers, "The layers of the benchmark");
  app.add_flag("--tiles", options.tiles, "Other register tiles as well");
  app.add_option("--random", options.random, "Random convolutions, this number");
  app.add_option("--matching", options.matching, "Those alone whose names have this text");
  app.add_option("--seed", options.seed, "What they are drawn from")->capture_default_str();
  app.add_option("--milliseconds", options.milliseconds, "For the candidates of one case")
      ->capture_default_str();
  app.add_option("--isa", options.isa, "The tier; else as CASTOR_ISA says, or the best");
  CLI11_PARSE(app, argc, argv);
  const castor::Status status = castor::bench::run(options);
  if (!status) std::cerr << "castor-sweep: " << status.error().message << "\n";
  return status.ok() ? 0 : 1;
}
