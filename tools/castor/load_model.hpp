// SPDX-License-Identifier: Apache-2.0
// Functions from model files of ONNX.
#pragma once

#include <string>
#include <vector>

#include "runtime/onnx/plan.hpp"

namespace CLI {
class App;
}

namespace castor::tools {

/// Whether a file's name says that it is a model: it ends in ".onnx".
bool is_model_file(const std::string& path);

/// What castor makes of a model. Errors name the file.
Result<onnx::Plan> load_plan(const std::string& path, const onnx::PlanOptions& options = {});

/// The functions of its units: the one called `name`, or all of them when `name` is empty.
Result<std::vector<FunctionPtr>> load_model_functions(const std::string& path,
                                                      const std::string& name,
                                                      const onnx::PlanOptions& options);

/// The whole model as one function, where castor has all its nodes.
Result<FunctionPtr> load_model_function(const std::string& path, const onnx::PlanOptions& options);

/// Adds --strict to a command that takes models.
void add_strict(CLI::App& command, onnx::PlanOptions& options);

}  // namespace castor::tools
