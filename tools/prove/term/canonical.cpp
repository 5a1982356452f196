// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/term/canonical.hpp"

#include <fmt/format.h>

#include <unordered_map>

#include "tools/prove/term/evaluate.hpp"

namespace castor::prove {
namespace {

std::string hexadecimal(Bits value) {
  const auto high = static_cast<uint64_t>(value >> 64);
  const auto low = static_cast<uint64_t>(value);
  return high != 0 ? fmt::format("0x{:x}{:016x}", high, low) : fmt::format("0x{:x}", low);
}

std::string float_attributes(const Node& node) {
  const FloatDetail detail = FloatDetail::unpacked(node.detail);
  std::string text = fmt::format(" e{}p{}", detail.format.exponent_bits, detail.format.precision);
  if (node.op == TermOp::float_convert) {
    text += fmt::format(" from e{}p{}", detail.from.exponent_bits, detail.from.precision);
  }
  return text + fmt::format(" r{}", static_cast<int>(detail.rounding));
}

std::string table_text(const std::vector<uint64_t>& entries) {
  std::string text = " [";
  for (const uint64_t entry : entries) text += fmt::format("{:x},", entry);
  return text + "]";
}

}  // namespace

std::string canonical_text(const Term& term) {
  const Terms& terms = term.terms();
  std::string text;
  std::unordered_map<uint32_t, size_t> numbers;
  std::unordered_map<uint64_t, size_t> inputs;
  for (const uint32_t id : reachable_nodes(std::span(&term, 1))) {
    const Node& node = terms.node(id);
    const size_t number = numbers.emplace(id, numbers.size()).first->second;
    text += fmt::format("n{}:{} = {}", number, node.width, name_of(node.op));
    for (size_t i = 0; i < node.operand_count; ++i) {
      text += fmt::format(" n{}", numbers.at(node.operands[i]));
    }
    if (node.op == TermOp::constant) text += " " + hexadecimal(node.value);
    if (node.op == TermOp::extract) text += fmt::format(" {}", node.detail);
    if (node.op == TermOp::table) text += table_text(terms.table_entries(node.detail));
    if (node.op >= TermOp::float_add) text += float_attributes(node);
    if (node.op == TermOp::input) {
      text += fmt::format(" {}", inputs.emplace(node.detail, inputs.size()).first->second);
    }
    text += "\n";
  }
  return text;
}

uint64_t canonical_hash(const Term& term) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : canonical_text(term)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace castor::prove
