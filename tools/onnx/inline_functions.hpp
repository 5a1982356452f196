// SPDX-License-Identifier: Apache-2.0
// The nodes of a model, with those of its functions in place of their calls.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/support/result.hpp"

namespace castor::onnx_file {

class ModelProto;
class NodeProto;

/// Versions of operator sets by domain; "" is ONNX's own.
using Opsets = std::map<std::string, int64_t>;

struct FlatNode {
  NodeProto* node;  ///< with the names that values have in the graph
  int64_t version;  ///< its domain's operator set has this version; 0: none is imported
};

/// Models have at most this many nodes, those of functions counted as often as they are called,
/// and copies of these take at most max_copied_bytes.
inline constexpr size_t max_nodes = 262144;
inline constexpr size_t max_copied_bytes = size_t{256} << 20;

/// Nodes whose values have names of their own for each call; the model keeps what they point to.
/// Refuses (invalid_argument) functions that call themselves, calls of more inputs or outputs than
/// a function has, and too many nodes or bytes (limit_exceeded).
Result<std::vector<FlatNode>> flat_nodes(ModelProto& model);

}  // namespace castor::onnx_file
