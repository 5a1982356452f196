// SPDX-License-Identifier: Apache-2.0
// castor prove: lane programs against specifications, for all inputs.
#include <atomic>
#include <mutex>
#include <thread>

#include "tools/castor/command.hpp"
#include "tools/castor/number_option.hpp"
#include "tools/prove/facts/fact.hpp"
#include "tools/prove/query/counterexample.hpp"
#include "tools/prove/query/subjects.hpp"
#include "tools/prove/solver/solver.hpp"
#include "tools/prove/term/evaluate.hpp"

namespace castor::tools {

namespace {

struct ProveCommand {
  std::string pair;
  std::string op;
  std::string name;
  bool all = false;
  bool facts = false;
  int samples = prove::FactEffort().samples;
  std::string isa = "all";
  std::string results;
  std::string write;
  bool again = false;
  bool open = false;
  std::optional<uint64_t> sample;
  uint64_t parts = 100;
  uint64_t steps = 4;
  int threads = 1;
  std::string inputs;
};

using Subjects = std::vector<prove::Subject>;

Status add(const Result<prove::Subject>& subject, const ProveCommand& command, Subjects& subjects) {
  if (!subject) return subject.error();
  if (command.name.empty() || subject->name == command.name) subjects.push_back(*subject);
  return {};
}

bool is_wanted(const prove::Conversion& conversion, const ProveCommand& command) {
  if (command.pair.empty()) return command.op.empty();
  const std::string_view pair = command.pair;
  const size_t slash = std::min(pair.find('/'), pair.size());
  const std::string_view from = pair.substr(0, slash);
  const std::string_view to = pair.substr(std::min(slash + 1, pair.size()));
  return (from == "*" || from == name_of(conversion.from)) &&
         (to == "*" || to == name_of(conversion.to));
}

bool is_wanted(const prove::ElementwiseOp& op, const ProveCommand& command) {
  if (command.op.empty()) return command.pair.empty();
  return command.op == info(op.op).name;
}

Result<Subjects> chosen_subjects(const ProveCommand& command) {
  Subjects subjects;
  for (const prove::Conversion& conversion : prove::all_conversions()) {
    if (!is_wanted(conversion, command)) continue;
    const Status added = add(prove::subject_of(conversion), command, subjects);
    if (!added) return added.error();
  }
  for (const prove::ElementwiseOp& op : prove::all_elementwise_ops()) {
    if (!is_wanted(op, command)) continue;
    const Status added = add(prove::subject_of(op), command, subjects);
    if (!added) return added.error();
  }
  if (!subjects.empty()) return subjects;
  return Error(
      ErrorCode::invalid_argument,
      "no conversion and no operation is meant; --pair takes types as f32/u8 or f32/*, --op a name "
      "as add, --name a subject as 'f32 -> u8 {rounding = down}' or 'add i8'");
}

Result<std::vector<jit::Tier>> tiers_of(const std::string& isa) {
  std::vector<jit::Tier> tiers;
  for (const jit::TierInfo& row : jit::tier_table()) {
    if (isa == "all" || isa == row.name) tiers.push_back(row.tier);
  }
  if (!tiers.empty()) return tiers;
  return Error(ErrorCode::invalid_argument,
               fmt::format("unknown tier '{}', expected {} or all", isa, tier_names()));
}

std::string repeating(const prove::Finding& finding) {
  return fmt::format("castor prove --name '{}' --isa {}", finding.subject.name,
                     name_of(finding.tier));
}

void print_finding(const prove::Finding& finding) {
  if (finding.verdict.status == prove::Status::wrong) {
    fmt::print("{}", prove::counterexample_text(finding, repeating(finding)));
  } else {
    fmt::print("open: {} on {}: {}\n", finding.subject.name, name_of(finding.tier),
               finding.verdict.reason);
  }
  std::fflush(stdout);
}

/// The same inputs for each subject and tier, as a counterexample has them.
Outcome run_inputs(const ProveCommand& command, const Subjects& subjects,
                   const std::vector<jit::Tier>& tiers) {
  std::vector<prove::Bits> inputs;
  std::string_view text = command.inputs;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    std::string_view one = text.substr(0, end);
    if (one.starts_with("0x")) one.remove_prefix(2);
    uint64_t bits = 0;
    const auto read = std::from_chars(one.data(), one.data() + one.size(), bits, 16);
    if (read.ec != std::errc() || read.ptr != one.data() + one.size()) {
      return wrong_use(fmt::format("--inputs: found '{}', expected bits as 0x3f800000,0x1", text));
    }
    inputs.push_back(bits);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  bool any_wrong = false;
  for (const prove::Subject& subject : subjects) {
    if (inputs.size() != subject.function->parameters.size()) {
      return wrong_use(fmt::format("--inputs: found {} operands, {} has {}", inputs.size(),
                                   subject.name, subject.function->parameters.size()));
    }
    for (const jit::Tier tier : tiers) {
      prove::Terms terms;
      const Result<prove::Query> query = prove::query_of(subject, tier, terms);
      if (!query) return failed(query.error());
      const bool is_wrong = prove::evaluate(query->is_wrong, inputs) != 0;
      any_wrong = any_wrong || is_wrong;
      const prove::Finding finding{
          subject, tier, {.status = prove::Status::wrong, .reason = {}, .inputs = inputs}, &*query};
      if (is_wrong) print_finding(finding);
      if (!is_wrong) fmt::print("{} on {} is right\n", subject.name, name_of(tier));
    }
  }
  if (!any_wrong) return {};
  return Failure{ExitStatus::failure, "a lane program is not what is specified, see above"};
}

void print_tally(const prove::Tally& tally) {
  using enum prove::Status;
  fmt::print("{} subjects x tiers: {} proved, {} exhausted, {} identity, {} open, {} wrong\n",
             tally.total(), tally.of(proved), tally.of(exhausted), tally.of(identity),
             tally.of(open), tally.of(wrong));
  fmt::print("{} distinct queries, {} decided now in {:.0f} s and {:.0f} million steps of z3 {}\n",
             tally.distinct, tally.decided, tally.seconds, static_cast<double>(tally.steps) / 1e6,
             prove::solver_version());
}

Result<prove::Results> known_results(const ProveCommand& command) {
  if (command.results.empty()) return prove::Results();
  return prove::Results::read(command.results);
}

/// Each subject on each tier, by as many threads as the command says: tier by tier, since one query
/// is often that of several tiers, for which threads would wait. What was found is written now and
/// then, so that an interruption loses little.
Status prove_subjects(prove::Prover& prover, const ProveCommand& command, const Subjects& subjects,
                      const std::vector<jit::Tier>& tiers) {
  constexpr size_t written_every = 8;
  std::atomic<size_t> next = 0;
  std::mutex mutex;  // guards the file and the status
  Status status;
  const auto write = [&] {
    const std::scoped_lock lock(mutex);
    const std::optional<prove::Results> results = prover.taken_results(written_every);
    if (results && status) status = results->write(command.write);
    return status.ok();
  };
  const auto work = [&] {
    for (size_t i = next++; i < subjects.size() * tiers.size(); i = next++) {
      prover.prove(subjects[i % subjects.size()], tiers[i / subjects.size()], print_finding);
      if (!command.write.empty() && !write()) return;
    }
  };
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < command.threads; ++i) others.emplace_back(work);
    work();
  }
  return status;
}

Outcome prove_all(const ProveCommand& command, const Subjects& subjects,
                  const std::vector<jit::Tier>& tiers) {
  Result<prove::Results> known = known_results(command);
  if (!known) return failed(known.error());
  prove::Effort effort;
  effort.solver_steps = command.steps * 1'000'000;
  const prove::Prover::Again sample = prove::sample_of(command.sample.value_or(0), command.parts);
  prove::Prover prover(std::move(*known), effort,
                       [&](uint64_t hash, const prove::Results::Entry& entry) {
                         const bool is_open = entry.status == prove::Status::open;
                         return command.again || (command.open && is_open) ||
                                (command.sample && sample(hash, entry));
                       });
  Status status = prove_subjects(prover, command, subjects, tiers);
  if (status && !command.write.empty()) status = prover.met().write(command.write);
  if (!status) return failed(status.error());
  print_tally(prover.tally());
  const size_t wrong = prover.tally().of(prove::Status::wrong);
  if (wrong == 0 && prover.contradictions() == 0) return {};
  return Failure{ExitStatus::failure,
                 fmt::format("{} wrong, {} results of the file not found again", wrong,
                             prover.contradictions())};
}

/// Facts whose name has --name in it, or all.
Outcome prove_facts(const ProveCommand& command) {
  prove::FactEffort effort;
  effort.samples = command.samples;
  effort.seed = command.sample.value_or(effort.seed);
  effort.is_long = command.all;
  size_t wrong = 0, decided = 0;
  for (const prove::Fact& fact : prove::all_facts()) {
    if (fact.name.find(command.name) == std::string::npos) continue;
    const auto start = std::chrono::steady_clock::now();
    const prove::FactVerdict verdict = fact.decide(effort);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    fmt::print("{:<9} {:<48} {} ({:.1f} s)\n", name_of(verdict.status), fact.name, verdict.detail,
               time.count());
    std::fflush(stdout);
    wrong += verdict.status == prove::Status::wrong ? 1 : 0;
    ++decided;
  }
  if (decided == 0) return wrong_use(fmt::format("no fact has '{}' in its name", command.name));
  if (wrong == 0) return {};
  return Failure{ExitStatus::failure, fmt::format("{} facts are wrong, see above", wrong)};
}

Outcome prove_command(const ProveCommand& command) {
  if (command.facts) return prove_facts(command);
  if (!command.all && command.pair.empty() && command.op.empty() && command.name.empty()) {
    return wrong_use("nothing to prove: give --pair, --op, --name, --all or --facts");
  }
  const Result<Subjects> subjects = chosen_subjects(command);
  if (!subjects) return failed(subjects.error());
  const Result<std::vector<jit::Tier>> tiers = tiers_of(command.isa);
  if (!tiers) return failed(tiers.error());
  return command.inputs.empty() ? prove_all(command, *subjects, *tiers)
                                : run_inputs(command, *subjects, *tiers);
}

}  // namespace

void add_prove(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "prove", "Prove that lane programs compute what is specified, for all inputs");
  auto options = std::make_shared<ProveCommand>();
  command
      ->add_option("--pair", options->pair,
                   "Conversions of these types, with all options; * is any type")
      ->type_name("SRC/DST");
  command->add_option("--op", options->op, "An elementwise operation on all types")
      ->type_name("NAME");
  command->add_option("--name", options->name, "One subject, as reports name it")
      ->type_name("TEXT");
  command->add_flag("--all", options->all, "All conversions and elementwise operations");
  command->add_flag("--facts", options->facts,
                    "Facts that planners rely on, or those with --name in their names; with --all, "
                    "of each every combination of shifts and sign bits");
  add_number_option<int>(*command, "--samples", options->samples, 1, 100'000, "COUNT",
                         "Slices that --facts draws of each form of a method (default 2)");
  command->add_option("--isa", options->isa, "Lane programs of this tier, or of all (default)")
      ->type_name("TIER|all");
  command->add_option("--results", options->results, "Results of before, which count as known")
      ->type_name("FILE");
  command->add_option("--write", options->write, "Write the results of what was met")
      ->type_name("FILE");
  command->add_flag("--again", options->again, "Decide known queries again");
  command->add_flag("--open", options->open, "Decide again what the results leave open");
  add_number_option<uint64_t>(*command, "--sample", options->sample, 0, ~uint64_t{0}, "SEED",
                              "Decide one in --parts of the known queries again");
  add_number_option<uint64_t>(*command, "--parts", options->parts, 1, 1'000'000, "COUNT",
                              "Parts of which --sample draws one (default 100)");
  add_number_option<uint64_t>(*command, "--steps", options->steps, 1, 4000, "MILLIONS",
                              "Steps of the solver for each query (default 4)");
  add_number_option<int>(*command, "--threads", options->threads, 1, 256, "N",
                         "Threads that decide queries (default 1)");
  command
      ->add_option("--inputs", options->inputs, "Run these operands instead, given by their bits")
      ->type_name("BITS,...");
  command->callback([options, &action] { action = [options] { return prove_command(*options); }; });
}

}  // namespace castor::tools
