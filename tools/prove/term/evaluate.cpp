// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/term/evaluate.hpp"

#include <array>

#include "tools/prove/term/float_circuits.hpp"

namespace castor::prove {
namespace {

template <class Node>
auto operands_of(Node& node) {
  return std::span(node.operands).first(node.operand_count);
}

}  // namespace

Term with_operands(const Node& node, std::span<const Term> v, Terms& terms, const Terms& from) {
  switch (node.op) {
    case TermOp::constant: return terms.constant(node.width, node.value);
    case TermOp::add: return v[0] + v[1];
    case TermOp::mul: return v[0] * v[1];
    case TermOp::bit_and: return v[0] & v[1];
    case TermOp::bit_or: return v[0] | v[1];
    case TermOp::bit_xor: return v[0] ^ v[1];
    case TermOp::shift_left: return shift_left(v[0], v[1]);
    case TermOp::shift_right: return shift_right(v[0], v[1]);
    case TermOp::shift_right_signed: return shift_right_signed(v[0], v[1]);
    case TermOp::extract: return extract(v[0], static_cast<int>(node.detail), node.width);
    case TermOp::concat: return concat(v[0], v[1]);
    case TermOp::extend_sign: return extend_sign(v[0], node.width);
    case TermOp::if_then_else: return if_then_else(v[0], v[1], v[2]);
    case TermOp::equal: return equal(v[0], v[1]);
    case TermOp::less_unsigned: return less_unsigned(v[0], v[1]);
    case TermOp::less_signed: return less_signed(v[0], v[1]);
    case TermOp::table: return terms.table(from.table_entries(node.detail), node.width, v[0]);
    default: return terms.make(node.op, node.width, v, node.detail);
  }
}

std::vector<uint32_t> reachable_nodes(std::span<const Term> roots) {
  std::vector<uint32_t> order;
  if (roots.empty()) return order;
  const Terms& terms = roots.front().terms();
  std::vector<bool> seen(terms.node_count());
  std::vector<std::pair<uint32_t, int>> open;  // a node and how many of its operands are done
  for (const Term& root : roots) {
    if (seen[root.id()]) continue;
    seen[root.id()] = true;
    open.emplace_back(root.id(), 0);
    while (!open.empty()) {
      auto& [id, done] = open.back();
      const auto operands = operands_of(terms.node(id));
      if (static_cast<size_t>(done) == operands.size()) {
        order.push_back(id);
        open.pop_back();
        continue;
      }
      const uint32_t next = operands[static_cast<size_t>(done++)];
      if (seen[next]) continue;
      seen[next] = true;
      open.emplace_back(next, 0);
    }
  }
  return order;
}

Evaluator::Evaluator(std::span<const Term> roots) : terms_(roots.front().terms()) {
  std::unordered_map<uint32_t, uint32_t> slot_of;
  for (const uint32_t id : reachable_nodes(roots)) {
    Step step{.node = terms_.node(id)};
    for (size_t i = 0; i < step.node.operand_count; ++i) {
      step.slots[i] = slot_of.at(step.node.operands[i]);
    }
    slot_of.emplace(id, static_cast<uint32_t>(steps_.size()));
    steps_.push_back(step);
  }
  for (const Term& root : roots) root_slots_.push_back(slot_of.at(root.id()));
  slots_.resize(steps_.size());
  results_.resize(root_slots_.size());
}

std::span<const Bits> Evaluator::operator()(std::span<const Bits> inputs) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (step.node.op == TermOp::input) {
      slots_[i] = inputs[step.node.detail] & low_mask(step.node.width);
      continue;
    }
    std::array<Bits, max_operands> values = {};
    for (size_t k = 0; k < step.node.operand_count; ++k) values[k] = slots_[step.slots[k]];
    slots_[i] = compute(terms_, step.node, std::span(values).first(step.node.operand_count));
  }
  for (size_t i = 0; i < results_.size(); ++i) results_[i] = slots_[root_slots_[i]];
  return results_;
}

Bits evaluate(const Term& term, std::span<const Bits> inputs) {
  return Evaluator(std::span(&term, 1))(inputs)[0];
}

Term substitute(const Term& term, std::span<const Term> inputs, Terms& into, FloatNodes floats) {
  const Terms& from = term.terms();
  std::unordered_map<uint32_t, Term> copies;
  for (const uint32_t id : reachable_nodes(std::span(&term, 1))) {
    const Node node = from.node(id);  // a copy: `into` may be the same Terms and grow
    if (node.op == TermOp::input) {
      const bool replaced = node.detail < inputs.size() && inputs[node.detail];
      copies[id] = replaced ? inputs[node.detail] : Term(&term.terms(), id);
      continue;
    }
    std::array<Term, max_operands> operands;
    for (size_t i = 0; i < node.operand_count; ++i) operands[i] = copies.at(node.operands[i]);
    const auto given = std::span(operands).first(node.operand_count);
    Term copy;
    if (floats == FloatNodes::written_out) copy = written_out(node, given);
    copies[id] = copy ? copy : with_operands(node, given, into, from);
  }
  return copies.at(term.id());
}

Term with_nodes_replaced(const Term& term,
                         const std::unordered_map<uint32_t, uint32_t>& replacements) {
  Terms& terms = term.terms();
  std::unordered_map<uint32_t, Term> copies;
  for (const uint32_t id : reachable_nodes(std::span(&term, 1))) {
    const Node node = terms.node(id);  // a copy: the Terms grow
    const auto replaced = replacements.find(id);
    if (replaced != replacements.end()) {
      const auto copy = copies.find(replaced->second);
      copies[id] = copy != copies.end() ? copy->second : Term(&terms, replaced->second);
    } else if (node.op == TermOp::input) {
      copies[id] = Term(&terms, id);
    } else {
      std::array<Term, max_operands> operands;
      for (size_t i = 0; i < node.operand_count; ++i) operands[i] = copies.at(node.operands[i]);
      copies[id] = with_operands(node, std::span(operands).first(node.operand_count), terms, terms);
    }
  }
  return copies.at(term.id());
}

}  // namespace castor::prove
