// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/kernel/own_element.hpp"

#include <algorithm>
#include <unordered_map>

#include "tools/prove/term/evaluate.hpp"

namespace castor::prove {

namespace {

class Copy {
 public:
  /// `used` counts the other inputs that are taken, by width.
  Copy(const Term& root, std::span<const Term> replacements, Terms& into, OtherInputs& others,
       std::map<int, size_t> used = {})
      : root_(root),
        from_(root.terms()),
        replacements_(replacements),
        into_(into),
        others_(others),
        used_(std::move(used)) {
    for (const uint32_t id : reachable_nodes(std::span(&root, 1))) note(id);
  }

  Term run() { return of(root_.id()); }

  /// Once it has run: replacements that have inputs for the neighbours too.
  std::vector<Term> with_neighbours(std::map<int, size_t>& used) {
    used_.clear();
    std::vector<Term> all(replacements_.begin(), replacements_.end());
    for (const uint32_t id : reachable_nodes(left_out_)) {
      const Node& node = from_.node(id);
      if (node.op == TermOp::input && !all[node.detail]) all[node.detail] = another(node.width);
    }
    used = used_;
    return all;
  }

 private:
  Term of(uint32_t id) {
    const auto found = copies_.find(id);
    if (found != copies_.end()) return found->second;
    const Term copy = made(id);
    copies_.emplace(id, copy);
    return copy;
  }

  /// Which inputs a node depends on, and how many nodes use it.
  struct Needs {
    bool own = false;
    bool others = false;
    bool own_truths = false;  ///< a truth value: some that it is made from are the own's
    int users = 0;
  };

  void note(uint32_t id) {
    const Node& node = from_.node(id);
    Needs needs;
    if (node.op == TermOp::input) {
      needs.own = static_cast<bool>(replacements_[node.detail]);
      needs.others = !needs.own;
    }
    for (size_t i = 0; i < node.operand_count; ++i) {
      Needs& operand = needs_.at(node.operands[i]);
      ++operand.users;
      needs.own = needs.own || operand.own;
      needs.others = needs.others || operand.others;
    }
    needs.own_truths = has_own_truths(node, needs);
    needs_.emplace(id, needs);
  }

  Term made(uint32_t id) {
    const Node& node = from_.node(id);
    const Needs& needs = needs_.at(id);
    if (needs.others && !needs.own) {
      left_out_.emplace_back(&from_, id);
      return another(node.width);
    }
    if (node.op == TermOp::input) return replacements_[node.detail];
    if (node.op == TermOp::constant) return into_.constant(node.width, node.value);
    const bool is_logic = node.op == TermOp::bit_and || node.op == TermOp::bit_or;
    if (node.width == 1 && is_logic && needs.others) return of_logic(id);
    std::vector<Term> operands;
    for (size_t i = 0; i < node.operand_count; ++i) operands.push_back(of(node.operands[i]));
    return with_operands(node, operands, into_, from_);
  }

  /// Operands of one operation, however they are nested, but for what has other users too: all see
  /// the same of it.
  Term of_logic(uint32_t id) {
    const TermOp op = from_.node(id).op;
    std::vector<uint32_t> left = {id};
    Term result;
    bool has_others = false;
    const auto add = [&](const Term& term) {
      result = !result ? term : op == TermOp::bit_and ? result & term : result | term;
    };
    while (!left.empty()) {
      const uint32_t next = left.back();
      left.pop_back();
      const Node& node = from_.node(next);
      const bool is_part = next == id || needs_.at(next).users == 1;
      if (node.op == op && is_part) {
        left.push_back(node.operands[0]);
        left.push_back(node.operands[1]);
      } else if (needs_.at(next).others && !needs_.at(next).own_truths) {
        has_others = true;
      } else {
        add(of(next));
      }
    }
    if (has_others) add(another(1));
    return result;
  }

  bool has_own_truths(const Node& node, const Needs& needs) const {
    if (node.width != 1) return false;
    switch (node.op) {
      case TermOp::bit_and:
      case TermOp::bit_or:
      case TermOp::bit_xor:
      case TermOp::if_then_else:
        return std::ranges::any_of(std::span(node.operands).first(node.operand_count),
                                   [&](uint32_t operand) { return needs_.at(operand).own_truths; });
      default: return needs.own && !needs.others;
    }
  }

  Term another(int width) {
    std::vector<Term>& known = others_[width];
    size_t& used = used_[width];
    if (used == known.size()) known.push_back(into_.input("of another element", width));
    return known[used++];
  }

  const Term root_;
  Terms& from_;
  const std::span<const Term> replacements_;
  Terms& into_;
  OtherInputs& others_;
  std::map<int, size_t> used_;
  std::vector<Term> left_out_;
  std::unordered_map<uint32_t, Needs> needs_;
  std::unordered_map<uint32_t, Term> copies_;
};

}  // namespace

Term of_own_elements(const Term& term, std::span<const Term> replacements, Terms& into,
                     OtherInputs& others, Neighbours neighbours) {
  Copy copy(term, replacements, into, others);
  const Term alone = copy.run();
  if (neighbours == Neighbours::left_out) return alone;
  std::map<int, size_t> used;
  const std::vector<Term> more = copy.with_neighbours(used);
  return Copy(term, more, into, others, used).run();
}

}  // namespace castor::prove
