// SPDX-License-Identifier: Apache-2.0
// castor check: machine code against the interpreter.
#include "castor/castor.hpp"
#include "tools/castor/check_case.hpp"
#include "tools/castor/check_report.hpp"
#include "tools/castor/command.hpp"
#include "tools/castor/load_function.hpp"
#include "tools/castor/load_model.hpp"
#include "tools/castor/number_option.hpp"
#include "tools/castor/tier_choice.hpp"
#include "tools/emulator/emulator.hpp"

namespace castor::tools {

namespace {

struct CheckOptions {
  std::string file;
  std::string function;
  onnx::PlanOptions plan;           ///< where the file is a model
  std::optional<TierChoice> tiers;  ///< nothing: the tier in use
  uint64_t seed = 1;
  bool frame_pointers = false;
  bool corrupt = false;  ///< flip a bit of a result, to see a report
};

/// A function compiled for one tier, and whether it still agrees.
struct Candidate {
  Tier tier;
  Kernel kernel;
  bool agrees = true;
};

Result<Candidate> compile_for(Tier tier, const CheckOptions& options, const FunctionPtr& function) {
  const Result<Runtime> runtime =
      Runtime::create({.tier = tier, .frame_pointers = options.frame_pointers});
  if (!runtime) return runtime.error();
  const Result<Kernel> kernel = runtime->compile(function);
  if (!kernel) return kernel.error();
  if (kernel->engine() == Engine::jit) return Candidate{tier, *kernel};
  return Error{ErrorCode::unsupported,
               fmt::format("@{} runs in the interpreter on {}, so there is nothing to check: {}",
                           function->name, name_of(tier), kernel->engine_reason())};
}

/// Quoted for a shell where that is needed.
std::string shell_word(const std::string& word) {
  const std::string plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string repeat_command(const CheckOptions& options, const Function& function, Tier tier) {
  return fmt::format("castor check {} --func {} --isa {} --seed {}{}{}", shell_word(options.file),
                     function.name, name_of(tier), options.seed,
                     options.frame_pointers ? " --frame-pointers" : "",
                     options.corrupt ? " --self-test-corrupt" : "");
}

/// Totals of one function.
struct Totals {
  size_t cases = 0;
  size_t elements = 0;
  size_t mismatches = 0;
};

/// Runs one case on every candidate that has agreed so far.
Status check_case(const CheckOptions& options, const FunctionPtr& function,
                  const InputSource& source, const CheckCase& test,
                  std::vector<Candidate>& candidates, Totals& totals) {
  const Result<PreparedCase> prepared = prepare_case(*function, source, test);
  if (!prepared) return prepared.error();
  ++totals.cases;
  for (const Dims& shape : prepared->output_shapes) {
    totals.elements += static_cast<size_t>(*element_count(shape));
  }
  for (Candidate& candidate : candidates) {
    if (!candidate.agrees) continue;
    const auto finding = compare_case(*prepared, candidate.kernel, options.corrupt);
    if (!finding) continue;
    candidate.agrees = false;
    ++totals.mismatches;
    const std::string repeat = repeat_command(options, *function, candidate.tier);
    fmt::print("{}\n", report(*prepared, function, *finding, candidate.tier, repeat));
  }
  return {};
}

/// The number of tiers that disagree.
Result<size_t> check_function(const CheckOptions& options, const FunctionPtr& function,
                              const std::vector<Tier>& tiers) {
  std::vector<Candidate> candidates;
  for (Tier tier : tiers) {
    Result<Candidate> candidate = compile_for(tier, options, function);
    if (!candidate) return candidate.error();
    candidates.push_back(std::move(candidate).value());
  }
  const std::vector<CheckCase> cases = plan_cases(*function, options.seed);
  if (cases.empty()) {
    return Error{ErrorCode::invalid_function,
                 fmt::format("@{}: found no sizes that its shapes admit", function->name)};
  }
  const InputSource source(*function, options.seed);
  Totals totals;
  for (const CheckCase& test : cases) {
    const Status checked = check_case(options, function, source, test, candidates, totals);
    if (!checked) return checked.error();
  }
  for (const Candidate& candidate : candidates) {
    fmt::print("@{} {}: {} ({} cases, {} elements)\n", function->name, name_of(candidate.tier),
               candidate.agrees ? "identical to the interpreter" : "MISMATCH", totals.cases,
               totals.elements);
  }
  return totals.mismatches;
}

Outcome check(const CheckOptions& options) {
  const Result<std::vector<FunctionPtr>> functions =
      load_functions(options.file, options.function, options.plan);
  if (!functions) return failed(functions.error());
  const Result<std::vector<Tier>> tiers = chosen_tiers(options.tiers);
  if (!tiers) return failed(tiers.error());
  size_t mismatches = 0;
  for (const FunctionPtr& function : *functions) {
    const Result<size_t> found = check_function(options, function, *tiers);
    if (!found) return failed(found.error());
    mismatches += *found;
  }
  const uint64_t calls = emulator::function_count();
  const uint64_t instructions = emulator::instruction_count();
  if (calls + instructions != 0) {
    fmt::print("emulated: {} calls of functions, {} instructions one by one\n", calls,
               instructions);
  }
  if (mismatches == 0) return {};
  return Failure{ExitStatus::failure, fmt::format("{} mismatch{}, reported above", mismatches,
                                                  mismatches == 1 ? "" : "es")};
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("check", "Compare machine code with the reference interpreter");
  auto options = std::make_shared<CheckOptions>();
  command->add_option("FILE", options->file, "text with the functions")->required()->type_name("");
  add_tier_choice(*command, options->tiers);
  add_frame_pointers_option(*command, options->frame_pointers);
  add_number_option<uint64_t>(*command, "--seed", options->seed, 0, UINT64_MAX, "N",
                              "seed of the random inputs")
      ->default_str(std::to_string(options->seed));
  add_strict(*command, options->plan);
  command->add_option("--func", options->function, "check one function only")->type_name("NAME");
  command->add_flag("--self-test-corrupt", options->corrupt)->group("");  // hidden from --help
  command->footer(
      "Inputs are the boundary patterns of each type and random bits; '?' dimensions take\n"
      "several sizes, 1 among them where shapes broadcast; tensors are dense, have gaps or are\n"
      "transposed. A mismatch gives a report and exit status 1.");
  command->callback([options, &action] { action = [options] { return check(*options); }; });
}

}  // namespace castor::tools
