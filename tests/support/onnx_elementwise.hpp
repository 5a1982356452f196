// SPDX-License-Identifier: Apache-2.0
// ONNX's node tests as functions of castor, and the committed list that says which are run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/onnx_elementwise_nodes.hpp"

namespace castor::test {

/// A graph's function, and the graph's inputs that are its parameters.
struct OnnxFunction {
  FunctionPtr function;
  std::vector<std::string> parameters;
};

/// Fails with `unsupported` where the graph needs something that castor lacks; the message says
/// what.
Result<OnnxFunction> onnx_function(const OnnxGraphTest& test, const OnnxGraphData& data,
                                   const OnnxForm& form);

/// The names of a function's ops in their order, constants apart: "mul, add, clamp".
std::string ops_of(const Function& function);

/// A line of tests/data/onnx_elementwise.txt.
struct OnnxListRow {
  std::string name;  ///< the name of the test's folder
  bool runs = false;
  std::string text;  ///< the ops that express it, or why it is left out
  auto operator<=>(const OnnxListRow&) const = default;
};

std::string to_string(const OnnxListRow& row);
std::vector<OnnxListRow> read_onnx_list(const std::filesystem::path& file);
/// Keeps the comment that the file begins with.
void write_onnx_list(const std::filesystem::path& file, std::vector<OnnxListRow> rows);

}  // namespace castor::test
