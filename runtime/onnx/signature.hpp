// SPDX-License-Identifier: Apache-2.0
// How many inputs and outputs the nodes of an operator have, and which attributes.
#pragma once

#include <climits>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/onnx/graph.hpp"

namespace castor::onnx {

/// What ONNX says of an operator's nodes, in all versions that castor knows together.
struct Signature {
  static constexpr int any = INT_MAX;

  int min_inputs = 1;
  int max_inputs = 1;
  /// Names with their kinds, separated by spaces: "axis:i alpha:f". The kinds are i (integer), f
  /// (float), s (string), t (tensor), I (integers), F (floats) and - (any other).
  std::string_view attributes{};
  int max_outputs = 1;
  int64_t since = 1;  ///< the first version of the operator set that has it
};

/// Why the node is of no version of the operator, or nothing where it is. Taking it would give it
/// another meaning than its writer thought of. What one version alone has is taken in all.
std::optional<std::string> contradiction(const Node& node, const Signature& signature);

}  // namespace castor::onnx
