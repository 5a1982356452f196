// SPDX-License-Identifier: Apache-2.0
// castor onnx: what castor makes of a model, node by node, and the functions that it becomes.
#include <algorithm>
#include <filesystem>
#include <set>

#include "ir/text/text.hpp"
#include "tools/castor/command.hpp"
#include "tools/castor/files.hpp"
#include "tools/castor/load_model.hpp"

namespace castor::tools {

namespace {

using onnx::NodeIndex;
using onnx::Plan;
using onnx::Verdict;

struct OnnxOptions {
  std::string file;
  std::string folder;  ///< for the functions; empty: none are written
  onnx::PlanOptions plan;
};

/// What became of one node of the file.
struct Fate {
  Verdict::Kind kind = Verdict::Kind::left;
  std::string text;
};

/// "unit_3, as part of QLinearConv".
std::string taken_text(const Plan& plan, NodeIndex index, const std::string& function) {
  const onnx::Node& node = plan.graph.nodes[index];
  if (node.origins.size() == 1) return "@" + function;
  return fmt::format("@{}, as part of {}", function, node.op_type);
}

/// The fate of each node as it was read. One that stands in several units takes the first.
std::vector<Fate> fates_of(const Plan& plan) {
  std::vector<std::string> function_of(plan.graph.nodes.size());
  for (const onnx::Unit& unit : plan.units) {
    for (const NodeIndex index : unit.nodes) function_of[index] = unit.function->name;
  }
  std::vector<Fate> fates(plan.read.size());
  for (NodeIndex index = 0; index < plan.graph.nodes.size(); ++index) {
    const Verdict& verdict = plan.verdicts[index];
    Fate fate{verdict.kind, "left: " + verdict.reason};
    if (verdict.kind == Verdict::Kind::folded) fate.text = "folded into a constant";
    if (verdict.kind == Verdict::Kind::unread) fate.text = "not needed: nothing reads it";
    if (verdict.kind == Verdict::Kind::taken) {
      fate.text = taken_text(plan, index, function_of[index]);
    }
    for (const NodeIndex origin : plan.graph.nodes[index].origins) {
      if (fates[origin].text.empty()) fates[origin] = fate;
    }
  }
  return fates;
}

void print_fates(const Plan& plan) {
  const std::vector<Fate> fates = fates_of(plan);
  for (size_t i = 0; i < fates.size(); ++i) fmt::print("{}: {}\n", plan.read[i], fates[i].text);
  const auto left = std::ranges::count(fates, Verdict::Kind::left, &Fate::kind);
  const auto unread = std::ranges::count(fates, Verdict::Kind::unread, &Fate::kind);
  const std::string needless = unread == 0 ? "" : fmt::format("; {} not needed", unread);
  fmt::print("{} of {} nodes taken, in {} function{}{}\n", std::ssize(fates) - left - unread,
             fates.size(), plan.units.size(), plan.units.size() == 1 ? "" : "s", needless);
  const bool has_fused = std::ranges::any_of(
      plan.graph.nodes, [](const onnx::Node& node) { return node.origins.size() > 1; });
  if (has_fused) {
    fmt::print(
        "DequantizeLinear, Conv (MatMul, Gemm), Relu and QuantizeLinear are one operator here: "
        "its results are within one step of theirs (--strict leaves them alone)\n");
  }
}

/// Writes the constants that a function's text names, each once.
Status write_constants(const std::filesystem::path& folder, const Function& function,
                       std::set<std::string>& written) {
  for (const Operation& operation : function.operations) {
    if (operation.data == nullptr || operation.data->binding.empty()) continue;
    if (!written.insert(operation.data->binding).second) continue;
    const std::span<const std::byte> bytes = operation.data->bytes;
    const std::string file = (folder / (operation.data->binding + ".bin")).string();
    if (Status status = write_file(file, {&bytes, 1}); !status) return status;
  }
  return {};
}

Status write_functions(const Plan& plan, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{ErrorCode::io, fmt::format("cannot make the folder {}", folder.string())};
  std::set<std::string> written;
  for (const onnx::Unit& unit : plan.units) {
    const std::string text = print(*unit.function);
    const auto bytes = std::as_bytes(std::span(text));
    const std::string file = (folder / (unit.function->name + ".castor")).string();
    if (Status status = write_file(file, {&bytes, 1}); !status) return status;
    if (Status status = write_constants(folder, *unit.function, written); !status) return status;
  }
  return {};
}

Outcome list_model(const OnnxOptions& options) {
  const Result<Plan> plan = load_plan(options.file, options.plan);
  if (!plan) return failed(plan.error());
  print_fates(*plan);
  if (options.folder.empty()) return {};
  const Status written = write_functions(*plan, options.folder);
  if (!written) return failed(written.error());
  return {};
}

}  // namespace

void add_onnx(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("onnx", "List what castor takes of an ONNX model");
  auto options = std::make_shared<OnnxOptions>();
  command->add_option("FILE", options->file, "model")->required()->type_name("");
  command->add_option("--functions", options->folder, "write the functions into this folder")
      ->type_name("DIR");
  add_strict(*command, options->plan);
  command->footer(
      "Every node is listed: with the function that takes it, or with the reason why it is left.\n"
      "run, check and dump take models too (names that end in .onnx).");
  command->callback([options, &action] { action = [options] { return list_model(*options); }; });
}

}  // namespace castor::tools
