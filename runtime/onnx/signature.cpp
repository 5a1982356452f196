// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnx/signature.hpp"

#include <fmt/format.h>

namespace castor::onnx {

namespace {

struct Kind {
  char letter;
  std::string_view name;
};

/// In the order of AttributeValue's alternatives.
constexpr Kind kinds[] = {{'-', "of a kind that castor has no use for"},
                          {'i', "an integer"},
                          {'f', "a float"},
                          {'s', "a string"},
                          {'t', "a tensor"},
                          {'I', "integers"},
                          {'F', "floats"}};
static_assert(std::size(kinds) == std::variant_size_v<AttributeValue>);

std::string_view name_of_kind(char letter) {
  for (const Kind& kind : kinds) {
    if (kind.letter == letter) return kind.name;
  }
  return kinds[0].name;
}

/// The kind of an attribute of that name, or nothing where the operator has none.
std::optional<char> wanted_kind(std::string_view attributes, std::string_view name) {
  while (!attributes.empty()) {
    const std::string_view entry = attributes.substr(0, attributes.find(' '));
    attributes.remove_prefix(std::min(entry.size() + 1, attributes.size()));
    if (entry.size() == name.size() + 2 && entry.starts_with(name)) return entry.back();
  }
  return std::nullopt;
}

std::optional<std::string> wrong_attribute(const Node& node, const Signature& signature) {
  for (const auto& [name, value] : node.attributes) {
    if (name.starts_with("__")) continue;  // ONNX leaves these to tools
    const std::optional<char> wanted = wanted_kind(signature.attributes, name);
    if (!wanted) return fmt::format("{} has no attribute {}", node.op_type, name);
    const Kind& found = kinds[value.index()];
    if (found.letter == *wanted) continue;
    return fmt::format("its attribute {} is {}, expected {}", name, found.name,
                       name_of_kind(*wanted));
  }
  return std::nullopt;
}

std::string count_text(int min, int max) {
  if (max == Signature::any) return fmt::format("at least {}", min);
  return min == max ? fmt::format("{}", min) : fmt::format("{} to {}", min, max);
}

}  // namespace

std::optional<std::string> contradiction(const Node& node, const Signature& signature) {
  if (node.domain.empty() && node.version > last_opset) {
    return fmt::format("it is of operator set {}, expected at most {}", node.version, last_opset);
  }
  if (node.version < signature.since) {
    return fmt::format("{} is there from version {} on, the operator set has version {}",
                       node.op_type, signature.since, node.version);
  }
  const auto inputs = static_cast<int>(node.inputs.size());
  if (inputs < signature.min_inputs || inputs > signature.max_inputs) {
    return fmt::format("it has {} inputs, expected {}", inputs,
                       count_text(signature.min_inputs, signature.max_inputs));
  }
  const auto outputs = static_cast<int>(node.outputs.size());
  if (outputs > signature.max_outputs) {
    return fmt::format("it has {} outputs, expected {}", outputs,
                       count_text(1, signature.max_outputs));
  }
  return wrong_attribute(node, signature);
}

}  // namespace castor::onnx
