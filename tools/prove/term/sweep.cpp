// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/term/sweep.hpp"

#include <algorithm>
#include <map>

#include "tools/prove/term/batch.hpp"
#include "tools/prove/term/evaluate.hpp"

namespace castor::prove {
namespace {

constexpr int max_input_width = 16;
constexpr uint32_t no_input = ~uint32_t{0};
constexpr uint32_t too_much = no_input - 1;  // several inputs, a wide input or a wide node

uint64_t mixed(uint64_t hash, uint64_t word) {
  uint64_t x = (hash ^ word) * 0x9e3779b97f4a7c15;
  return x ^ (x >> 29);
}

/// By node, the only input that it depends on, if it can be run on all of its values.
std::vector<uint32_t> inputs_of(const Terms& terms, const std::vector<uint32_t>& nodes) {
  std::vector<uint32_t> inputs(terms.node_count(), no_input);
  for (const uint32_t id : nodes) {
    const Node& node = terms.node(id);
    uint32_t& input = inputs[id];
    if (node.op == TermOp::input) input = node.width <= max_input_width ? id : too_much;
    for (size_t i = 0; i < node.operand_count; ++i) {
      const uint32_t other = inputs[node.operands[i]];
      if (other == no_input || other == input) continue;
      input = input == no_input ? other : too_much;
    }
    if (node.width > Batch::max_width) input = too_much;
  }
  return inputs;
}

/// Nodes that depend on one input, with what they are replaced by.
class Sweep {
 public:
  Sweep(Terms& terms, std::vector<uint32_t> nodes)
      : terms_(terms), nodes_(std::move(nodes)), hashes_(nodes_.size()) {}

  void run(std::unordered_map<uint32_t, uint32_t>& replacements) {
    std::vector<Term> roots;
    for (const uint32_t id : nodes_) roots.emplace_back(&terms_, id);
    Batch batch(roots);
    for_all_values(batch, [&] { update_hashes(batch); });
    std::vector<size_t> leaders = leaders_by_hash();
    for_all_values(batch, [&] { drop_unequal(batch, leaders); });
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (leaders[i] != i) replacements[nodes_[i]] = nodes_[leaders[i]];
    }
  }

 private:
  template <class Visit>
  void for_all_values(Batch& batch, const Visit& visit) {
    for (uint64_t first = 0; first < uint64_t{1} << max_input_width; first += Batch::lanes) {
      batch.run(first);
      visit();
    }
  }

  void update_hashes(const Batch& batch) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (const uint64_t value : batch.of(nodes_[i])) hashes_[i] = mixed(hashes_[i], value);
    }
  }

  /// The first node of each width and hash.
  std::vector<size_t> leaders_by_hash() const {
    std::map<std::pair<int, uint64_t>, size_t> first;
    std::vector<size_t> leaders;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const int width = terms_.node(nodes_[i]).width;
      leaders.push_back(first.emplace(std::pair(width, hashes_[i]), i).first->second);
    }
    return leaders;
  }

  void drop_unequal(const Batch& batch, std::vector<size_t>& leaders) const {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (leaders[i] == i) continue;
      if (batch.of(nodes_[i]) != batch.of(nodes_[leaders[i]])) leaders[i] = i;
    }
  }

  Terms& terms_;
  const std::vector<uint32_t> nodes_;
  std::vector<uint64_t> hashes_;
};

}  // namespace

Term with_equal_nodes_merged(const Term& root) {
  Terms& terms = root.terms();
  const std::vector<uint32_t> order = reachable_nodes(std::span(&root, 1));
  const std::vector<uint32_t> inputs = inputs_of(terms, order);
  std::map<uint32_t, std::vector<uint32_t>> by_input;
  for (const uint32_t id : order) {
    if (inputs[id] < too_much) by_input[inputs[id]].push_back(id);
  }
  std::unordered_map<uint32_t, uint32_t> replacements;
  for (auto& [input, nodes] : by_input) Sweep(terms, std::move(nodes)).run(replacements);
  if (replacements.empty()) return root;
  return with_nodes_replaced(root, replacements);
}

}  // namespace castor::prove
