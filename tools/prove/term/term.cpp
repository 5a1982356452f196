// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/term/term.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <string_view>

namespace castor::prove {
namespace {

constexpr std::string_view names[] = {"constant",
                                      "input",
                                      "add",
                                      "mul",
                                      "udiv",
                                      "urem",
                                      "and",
                                      "or",
                                      "xor",
                                      "shift_left",
                                      "shift_right",
                                      "shift_right_signed",
                                      "extract",
                                      "concat",
                                      "extend_sign",
                                      "if",
                                      "equal",
                                      "less_unsigned",
                                      "less_signed",
                                      "table",
                                      "float_add",
                                      "float_mul",
                                      "float_div",
                                      "float_sqrt",
                                      "float_fma",
                                      "float_remainder",
                                      "float_round",
                                      "float_convert",
                                      "float_to_signed",
                                      "float_to_unsigned",
                                      "signed_to_float",
                                      "unsigned_to_float"};
static_assert(std::size(names) == static_cast<size_t>(TermOp::unsigned_to_float) + 1);

/// Finaliser of SplitMix64 (Steele, Lea, Flood), over one more word.
uint64_t mixed(uint64_t hash, uint64_t word) {
  uint64_t x = (hash ^ word) + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

constexpr bool commutes(TermOp op) {
  switch (op) {
    case TermOp::add:
    case TermOp::mul:
    case TermOp::bit_and:
    case TermOp::bit_or:
    case TermOp::bit_xor:
    case TermOp::equal:
    case TermOp::float_add:
    case TermOp::float_mul: return true;
    default: return false;
  }
}

bool same_node(const Node& a, const Node& b) {
  return a.op == b.op && a.width == b.width && a.operand_count == b.operand_count &&
         a.operands == b.operands && a.detail == b.detail && a.value == b.value;
}

}  // namespace

std::string_view name_of(TermOp op) { return names[static_cast<size_t>(op)]; }

uint64_t FloatDetail::packed() const {
  const auto bytes = [](FloatFormat f) { return uint64_t{f.exponent_bits} << 8 | f.precision; };
  return static_cast<uint64_t>(rounding) << 32 | bytes(from) << 16 | bytes(format);
}

FloatDetail FloatDetail::unpacked(uint64_t detail) {
  const auto format = [](uint64_t bits) {
    return FloatFormat{static_cast<uint8_t>(bits >> 8 & 0xff), static_cast<uint8_t>(bits & 0xff)};
  };
  return {format(detail), format(detail >> 16), static_cast<Rounding>(detail >> 32 & 0xff)};
}

bool Term::is_constant(Bits value) const {
  return is_constant() && node().value == (value & low_mask(width()));
}

uint64_t Terms::hash_of(const Node& node) const {
  uint64_t hash = mixed(static_cast<uint64_t>(node.op), node.width);
  const uint64_t detail = node.op == TermOp::table ? table_hashes_[node.detail] : node.detail;
  hash = mixed(hash, detail);
  hash = mixed(hash, static_cast<uint64_t>(node.value));
  hash = mixed(hash, static_cast<uint64_t>(node.value >> 64));
  for (int i = 0; i < node.operand_count; ++i) {
    hash = mixed(hash, nodes_[node.operands[static_cast<size_t>(i)]].hash);
  }
  return hash;
}

Term Terms::interned(Node node) {
  node.hash = hash_of(node);
  const auto [first, last] = ids_.equal_range(node.hash);
  for (auto found = first; found != last; ++found) {
    if (same_node(nodes_[found->second], node)) return {this, found->second};
  }
  const auto id = static_cast<uint32_t>(nodes_.size());
  ids_.emplace(node.hash, id);
  nodes_.push_back(node);
  return {this, id};
}

Term Terms::constant(int width, Bits value) {
  assert(width >= 1 && width <= max_width);
  return interned({.op = TermOp::constant,
                   .width = static_cast<uint8_t>(width),
                   .value = value & low_mask(width)});
}

Term Terms::input(std::string name, int width) {
  input_names_.push_back(std::move(name));
  return interned({.op = TermOp::input,
                   .width = static_cast<uint8_t>(width),
                   .detail = input_names_.size() - 1});
}

Term Terms::table(std::span<const uint64_t> entries, int width, const Term& index) {
  assert(entries.size() == size_t{1} << index.width());
  uint64_t hash = 0;
  for (const uint64_t entry : entries) hash = mixed(hash, entry);
  size_t number = 0;
  while (number < tables_.size() &&
         (table_hashes_[number] != hash || !std::ranges::equal(tables_[number], entries))) {
    ++number;
  }
  if (number == tables_.size()) {
    tables_.emplace_back(entries.begin(), entries.end());
    table_hashes_.push_back(hash);
  }
  return make(TermOp::table, width, std::array{index}, number);
}

Term Terms::make(TermOp op, int width, std::span<const Term> operands, uint64_t detail) {
  Node node{.op = op,
            .width = static_cast<uint8_t>(width),
            .operand_count = static_cast<uint8_t>(operands.size()),
            .detail = detail};
  std::array<Bits, max_operands> values = {};
  bool constant_operands = true;
  for (size_t i = 0; i < operands.size(); ++i) {
    assert(&operands[i].terms() == this);
    node.operands[i] = operands[i].id();
    constant_operands = constant_operands && operands[i].is_constant();
    values[i] = operands[i].node().value;
  }
  if (constant_operands) {
    return constant(width, compute(*this, node, std::span(values).first(operands.size())));
  }
  // One order of operands, the same in each process, so that a + b and b + a are one node.
  if (commutes(op)) {
    const auto rank = [this](uint32_t id) { return std::pair(nodes_[id].hash, id); };
    if (rank(node.operands[1]) < rank(node.operands[0])) {
      std::swap(node.operands[0], node.operands[1]);
    }
  }
  return interned(node);
}

}  // namespace castor::prove
