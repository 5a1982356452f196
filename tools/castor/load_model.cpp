// SPDX-License-Identifier: Apache-2.0
#include "tools/castor/load_model.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "tools/onnx/model.hpp"

namespace castor::tools {

namespace {

Error in_file(const std::string& path, const Error& error) {
  return {error.code, fmt::format("{}: {}", path, error.message)};
}

}  // namespace

bool is_model_file(const std::string& path) { return path.ends_with(".onnx"); }

Result<onnx::Plan> load_plan(const std::string& path, const onnx::PlanOptions& options) {
  Result<onnx::Graph> graph = onnx_file::read_model(path);
  if (!graph) return graph.error();
  Result<onnx::Plan> plan = make_plan(std::move(*graph), options);
  if (!plan) return in_file(path, plan.error());
  return plan;
}

Result<std::vector<FunctionPtr>> load_model_functions(const std::string& path,
                                                      const std::string& name,
                                                      const onnx::PlanOptions& options) {
  const Result<onnx::Plan> plan = load_plan(path, options);
  if (!plan) return plan.error();
  std::vector<FunctionPtr> functions;
  for (const onnx::Unit& unit : plan->units) {
    if (name.empty() || unit.function->name == name) functions.push_back(unit.function);
  }
  if (!functions.empty()) return functions;
  const std::string what = name.empty() ? "no node of it is taken" : "no unit is called @" + name;
  return in_file(path, {ErrorCode::invalid_argument, what});
}

Result<FunctionPtr> load_model_function(const std::string& path, const onnx::PlanOptions& options) {
  const Result<onnx::Plan> plan = load_plan(path, options);
  if (!plan) return plan.error();
  Result<FunctionPtr> function = whole_function(*plan);
  if (!function) return in_file(path, function.error());
  return function;
}

void add_strict(CLI::App& command, onnx::PlanOptions& options) {
  command.add_flag("--strict", options.strict,
                   "take quantized units of float operators node by node");
}

}  // namespace castor::tools
