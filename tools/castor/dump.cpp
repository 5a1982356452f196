// SPDX-License-Identifier: Apache-2.0
// castor dump: the stages of the lowering, from the text form to annotated machine code.
#include <castor/listing.hpp>

#include "tools/castor/command.hpp"
#include "tools/castor/load_function.hpp"

namespace castor::tools {

namespace {

struct Stage;

struct DumpOptions {
  std::string file;
  std::string function;
  const Stage* stage = nullptr;  ///< null: all of them
  std::optional<jit::Tier> tier;
  std::optional<jit::Core> core;
};

/// One stage of the lowering.
struct Stage {
  std::string_view name;
  DumpStage stage;
};

constexpr std::array<Stage, 4> stages = {{
    {"ir", DumpStage::ir},
    {"nest", DumpStage::nest},
    {"lanes", DumpStage::lanes},
    {"asm", DumpStage::assembly},
}};

std::optional<const Stage*> stage_named(std::string_view name) {
  for (const Stage& stage : stages) {
    if (stage.name == name) return &stage;
  }
  return std::nullopt;
}

/// The tier asked for, whether or not this machine runs it; else the one in use; else avx2. The
/// core asked for; else the generic one, so that plans are the same on every machine.
jit::Target target_of(const DumpOptions& options) {
  jit::Target target;
  if (options.tier) {
    target.tier = *options.tier;
  } else if (const Result<jit::Target> chosen = jit::choose_target({})) {
    target = *chosen;
  }
  target.core = options.core.value_or(jit::Core::generic);
  return target;
}

Status dump_stage(const Stage& stage, const FunctionPtr& function, const jit::Target& target) {
  const Result<std::string> text = dump(function, stage.stage, target.tier, target.core);
  if (!text) return text.error();
  const std::string tier =
      stage.stage == DumpStage::ir ? "" : fmt::format(" for {}", name_of(target.tier));
  fmt::print("// @{}: {}{}\n{}\n", function->name, stage.name, tier, *text);
  return {};
}

Outcome dump(const DumpOptions& options) {
  const Result<std::vector<FunctionPtr>> functions = load_functions(options.file, options.function);
  if (!functions) return failed(functions.error());
  const jit::Target target = target_of(options);
  for (const FunctionPtr& function : *functions) {
    for (const Stage& stage : stages) {
      if (options.stage != nullptr && options.stage != &stage) continue;
      const Status dumped = dump_stage(stage, function, target);
      if (!dumped) return failed(dumped.error());
    }
  }
  return {};
}

}  // namespace

void add_dump(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("dump", "Print the stages of a function's lowering");
  auto options = std::make_shared<DumpOptions>();
  command->add_option("FILE", options->file, "text with the functions")->required()->type_name("");
  add_named_option<const Stage*>(*command, "--stage", options->stage, stage_named, "stage",
                                 "ir, nest, lanes or asm",
                                 "print one stage only: ir, nest, lanes or asm");
  command->add_option("--func", options->function, "print one function only")->type_name("NAME");
  add_isa_option(*command, options->tier);
  add_core_option(*command, options->core);
  command->footer("Any tier can be printed, also one that this machine cannot run.");
  command->callback([options, &action] { action = [options] { return dump(*options); }; });
}

}  // namespace castor::tools
