// SPDX-License-Identifier: Apache-2.0
// ONNX's node tests as whole models, read by the front end, and the committed list of what becomes
// of each. (tests/support/onnx_node.hpp reads those of one node without it.)
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/onnx/plan.hpp"

namespace castor::test {

/// One data set: a tensor for each of the graph's inputs and outputs, in its order.
struct OnnxModelData {
  std::vector<onnx::Tensor> inputs;
  std::vector<onnx::Tensor> outputs;
};

struct OnnxModelTest {
  std::string name;  ///< the name of its folder
  onnx::Graph graph;
  std::vector<OnnxModelData> data_sets;
};

/// Fails with `unsupported` for opsets and tensors that castor lacks, and for values that are no
/// tensors; otherwise for files that are missing or contradict themselves.
Result<OnnxModelTest> read_onnx_model_test(const std::filesystem::path& folder);

/// Two forms of the same model; both must give what ONNX expects.
struct OnnxForm {
  bool unknown_extents = false;  ///< no extent of an input is known
  bool known_scalars = false;    ///< inputs of rank 0 are constants, as far as castor has a use
};

/// The function of a model for one data set, and the graph's inputs that are its parameters. Shapes
/// and axes that are inputs of the graph become constants. Fails with `unsupported` where a node is
/// left; the message says why.
struct OnnxFunction {
  FunctionPtr function;
  std::vector<size_t> inputs;
};
Result<OnnxFunction> onnx_function(const OnnxModelTest& test, const OnnxModelData& data,
                                   const OnnxForm& form);

/// The names of a function's ops in their order, constants apart: "mul, add, clamp".
std::string ops_of(const Function& function);

/// A line of tests/data/onnx_models.txt.
struct OnnxListRow {
  std::string name;  ///< the name of the test's folder
  bool runs = false;
  std::string text;  ///< the ops that express it, or why it is left out
  friend auto operator<=>(const OnnxListRow&, const OnnxListRow&) = default;
};
std::string to_string(const OnnxListRow& row);
std::vector<OnnxListRow> read_onnx_list(const std::filesystem::path& file);
/// Writes the rows, sorted, below the comments that the file begins with.
void write_onnx_list(const std::filesystem::path& file, std::vector<OnnxListRow> rows);

}  // namespace castor::test
