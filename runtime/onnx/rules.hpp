// SPDX-License-Identifier: Apache-2.0
// Which operators castor has, and what each becomes. One row in rules.cpp declares an operator; its
// function is in the file of its topic under rules/.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "runtime/onnx/signature.hpp"
#include "runtime/onnx/translation.hpp"

namespace castor::onnx {

/// What the outputs of a node are, in its order.
using Outputs = std::vector<ValueId>;

struct Rule {
  std::string_view op_type;
  std::string_view domain;  ///< empty for ONNX's own
  Outputs (*outputs)(const Node& node, Translation& into);
  Signature signature{};
};

/// The row of an operator, or null.
const Rule* find_rule(std::string_view domain, std::string_view op_type);
std::span<const Rule> rules();

/// Adds what the node computes, and defines its outputs; one that nothing reads may stay undefined.
/// What castor lacks is refused.
void translate(const Node& node, Translation& into);

}  // namespace castor::onnx
