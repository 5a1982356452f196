// SPDX-License-Identifier: Apache-2.0
// castor dump: the stages of the lowering, from the text form to annotated machine code, as text or
// as a page.
#include <castor/listing.hpp>

#include <cstdlib>
#include <filesystem>

#include "tools/castor/command.hpp"
#include "tools/castor/files.hpp"
#include "tools/castor/load_function.hpp"
#include "tools/castor/load_model.hpp"
#include "tools/explorer/page.hpp"

namespace castor::tools {

namespace {

struct Stage;

struct DumpOptions {
  std::string file;
  std::string function;
  onnx::PlanOptions plan;        ///< where the file is a model
  const Stage* stage = nullptr;  ///< null: all of them
  std::optional<jit::Tier> tier;
  std::optional<jit::Core> core;
  bool frame_pointers = false;
  std::string page;                  ///< file to write one to; empty: stages are printed
  std::optional<CodeFormat> format;  ///< none: the listing
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

constexpr std::array<std::pair<std::string_view, CodeFormat>, 3> formats = {
    {{"gas", CodeFormat::gas}, {"hex", CodeFormat::hex}, {"mca", CodeFormat::mca}}};

std::optional<CodeFormat> format_named(std::string_view name) {
  for (const auto& [known, format] : formats) {
    if (known == name) return format;
  }
  return std::nullopt;
}

std::optional<const Stage*> stage_named(std::string_view name) {
  for (const Stage& stage : stages) {
    if (stage.name == name) return &stage;
  }
  return std::nullopt;
}

/// The tier asked for, whether or not this machine runs it; else the one in use; else avx2. The
/// core asked for; else the one in use, which CASTOR_CORE may name.
Result<jit::Target> target_of(const DumpOptions& options) {
  jit::Target target;
  if (options.tier) {
    target.tier = *options.tier;
  } else if (const Result<jit::Target> chosen = jit::choose_target({})) {
    target = *chosen;
  }
  const Result<jit::CoreChoice> core =
      jit::choose_core(options.core, jit::host().identity, std::getenv("CASTOR_CORE"));
  if (!core) return core.error();
  target.core = core->core;
  target.frame_pointers = options.frame_pointers;
  return target;
}

Status dump_stage(const Stage& stage, const FunctionPtr& function, const jit::Target& target) {
  const Result<std::string> text =
      dump(function, stage.stage, target.tier, target.core, target.frame_pointers);
  if (!text) return text.error();
  const std::string tier =
      stage.stage == DumpStage::ir ? "" : fmt::format(" for {}", name_of(target.tier));
  fmt::print("// @{}: {}{}\n{}\n", function->name, stage.name, tier, *text);
  return {};
}

/// Writes the page of all functions; of tiers it has all, and shows the target's first.
Outcome write_page(const DumpOptions& options, std::span<const FunctionPtr> functions,
                   const jit::Target& target) {
  const std::string name = std::filesystem::path(options.file).filename().string();
  const auto model =
      explorer::explore(name, functions, target.tier, target.core, target.frame_pointers);
  if (!model) return failed(model.error());
  const std::string page = explorer::to_page(*model);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(page));
  const Status written = write_file(options.page, {&bytes, 1});
  if (!written) return failed(written.error());
  return {};
}

/// Comments begin with '#', so that what reads the format reads all of it.
Outcome dump_codes(const std::vector<FunctionPtr>& functions, CodeFormat format,
                   const jit::Target& target) {
  for (const FunctionPtr& function : functions) {
    const Result<std::string> text =
        dump_code(function, format, target.tier, target.core, target.frame_pointers);
    if (!text) return failed(text.error());
    fmt::print("# @{} for {}\n{}", function->name, name_of(target.tier), *text);
  }
  return {};
}

Outcome dump(const DumpOptions& options) {
  const bool is_asm = options.stage == nullptr || options.stage->stage == DumpStage::assembly;
  if (options.format && !is_asm) return wrong_use("--format and --mca are of --stage asm");
  const Result<std::vector<FunctionPtr>> functions =
      load_functions(options.file, options.function, options.plan);
  if (!functions) return failed(functions.error());
  const Result<jit::Target> target = target_of(options);
  if (!target) return failed(target.error());
  if (!options.page.empty()) return write_page(options, *functions, *target);
  if (options.format) return dump_codes(*functions, *options.format, *target);
  for (const FunctionPtr& function : *functions) {
    for (const Stage& stage : stages) {
      if (options.stage != nullptr && options.stage != &stage) continue;
      const Status dumped = dump_stage(stage, function, *target);
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
  command->get_option("--stage")->excludes(
      command
          ->add_option("--html", options->page,
                       "write a page that shows all stages beside each other, for all tiers")
          ->type_name("FILE"));
  add_strict(*command, options->plan);
  command->add_option("--func", options->function, "print one function only")->type_name("NAME");
  add_isa_option(*command, options->tier);
  add_core_option(*command, options->core);
  add_frame_pointers_option(*command, options->frame_pointers);
  add_named_option<CodeFormat>(*command, "--format", options->format, format_named, "format",
                               "gas, hex or mca",
                               "print machine code alone, for other tools: gas, hex or mca");
  command->add_flag_callback(
      "--mca", [options] { options->format = CodeFormat::mca; },
      "print machine code alone, for llvm-mca, with a region for each loop");
  command->footer("Any tier can be printed, also one that this machine cannot run.");
  command->callback([options, &action] { action = [options] { return dump(*options); }; });
}

}  // namespace castor::tools
