// SPDX-License-Identifier: Apache-2.0
// ONNX's node tests: one operation, its inputs and the outputs that it must give.
//
// A test is a folder that holds model.onnx and folders test_data_set_0, test_data_set_1, ... with
// input_0.pb, input_1.pb, ..., output_0.pb, ... in the order of the graph's inputs and outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/shape/shape.hpp"
#include "ir/support/result.hpp"

namespace castor::test {

/// TensorProto.DataType of strings.
inline constexpr int32_t onnx_string = 8;

/// A tensor of ONNX in castor's storage.
struct OnnxTensor {
  int32_t data_type = 0;               ///< TensorProto.DataType
  std::optional<ElementType> element;  ///< nothing where castor has no such type
  Dims shape;
  std::vector<std::byte> bytes;  ///< dense; empty without an element type
};

/// Values of an attribute; only the member that the attribute's kind selects is set.
struct OnnxAttribute {
  int64_t i = 0;
  std::string s;
  std::vector<int64_t> ints;
};

struct OnnxDataSet {
  std::vector<std::optional<OnnxTensor>> inputs;  ///< in the node's order; nothing: left out
  std::vector<OnnxTensor> outputs;                ///< in the graph's order
};

struct OnnxNodeTest {
  std::string name;  ///< the name of its folder
  std::string op_type;
  int64_t opset = 0;  ///< version of ONNX's own operator set that the model asks for
  std::map<std::string, OnnxAttribute> attributes;
  std::vector<OnnxDataSet> data_sets;

  /// The attribute's value, or `otherwise` where the node does not set it.
  int64_t integer(const std::string& attribute, int64_t otherwise) const;
  std::string text(const std::string& attribute, std::string_view otherwise) const;
  std::vector<int64_t> integers(const std::string& attribute,
                                std::vector<int64_t> otherwise = {}) const;
};

/// castor's type for a value of ONNX's TensorProto.DataType, or nothing.
std::optional<ElementType> element_type_of_onnx(int64_t data_type);

/// A serialised TensorProto.
Result<OnnxTensor> parse_onnx_tensor(std::string_view serialised);

/// Reads a test. Fails with `unsupported` for a model of several nodes (an expanded function body)
/// or with values that are not tensors, and with `io` for files that are missing or contradict
/// themselves.
Result<OnnxNodeTest> read_onnx_node_test(const std::filesystem::path& folder);

}  // namespace castor::test
