// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnx/groups.hpp"

#include <algorithm>
#include <bit>

namespace castor::onnx {

namespace {

/// A set of clusters.
class Set {
 public:
  explicit Set(size_t size) : words_((size + 63) / 64) {}
  bool has(size_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  void insert(size_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  void erase(size_t i) { words_[i / 64] &= ~(uint64_t{1} << (i % 64)); }
  void insert(const Set& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  }
  bool meets(const Set& other) const {
    for (size_t w = 0; w < words_.size(); ++w) {
      if ((words_[w] & other.words_[w]) != 0) return true;
    }
    return false;
  }
  /// Calls visit(i) for every element that is not in `other`.
  template <class Visit>
  void each_without(const Set& other, const Visit& visit) const {
    for (size_t w = 0; w < words_.size(); ++w) {
      for (uint64_t remaining = words_[w] & ~other.words_[w]; remaining != 0;
           remaining &= remaining - 1) {
        visit(w * 64 + static_cast<size_t>(std::countr_zero(remaining)));
      }
    }
  }

 private:
  std::vector<uint64_t> words_;
};

/// Clusters of nodes, each named by its first node, with all that they depend on and all that
/// depends on them, through other clusters too.
class Clusters {
 public:
  explicit Clusters(size_t nodes)
      : of_(nodes), before_(nodes, Set(nodes)), after_(nodes, Set(nodes)) {
    for (size_t i = 0; i < nodes; ++i) of_[i] = static_cast<NodeIndex>(i);
  }

  /// An edge between nodes; edges come in the order of the nodes that they lead to.
  void connect(NodeIndex from, NodeIndex to) {
    before_[to].insert(before_[from]);
    before_[to].insert(from);
  }
  void close() {
    const Set none(of_.size());
    for (size_t i = 0; i < of_.size(); ++i) {
      before_[i].each_without(none, [&](size_t earlier) { after_[earlier].insert(i); });
    }
  }

  NodeIndex of(NodeIndex node) const {
    while (of_[node] != node) node = of_[node];
    return node;
  }

  /// Makes the clusters of two nodes, where `from` computes what `to` reads, one, unless a path
  /// between them goes through a third one.
  void merge(NodeIndex from, NodeIndex to) {
    const NodeIndex a = of(from);
    const NodeIndex b = of(to);
    if (a == b || after_[a].meets(before_[b])) return;
    const NodeIndex kept = std::min(a, b);
    const NodeIndex gone = std::max(a, b);
    const Set a_after = after_[a];
    const Set b_before = before_[b];
    // What was after a alone is after b as well now, and what was before b alone before a.
    a_after.each_without(after_[b], [&](size_t later) {
      before_[later].insert(before_[b]);
      before_[later].insert(kept);
    });
    b_before.each_without(before_[a], [&](size_t earlier) {
      after_[earlier].insert(after_[a]);
      after_[earlier].insert(kept);
    });
    after_[kept].insert(a_after);
    after_[kept].insert(after_[gone]);
    before_[kept].insert(b_before);
    before_[kept].insert(before_[gone]);
    forget(gone, kept);
  }

 private:
  void forget(NodeIndex gone, NodeIndex kept) {
    of_[gone] = kept;
    const Set none(of_.size());
    after_[kept].erase(kept);
    after_[kept].erase(gone);
    before_[kept].erase(kept);
    before_[kept].erase(gone);
    after_[kept].each_without(none, [&](size_t later) {
      before_[later].erase(gone);
      before_[later].insert(kept);
    });
    before_[kept].each_without(none, [&](size_t earlier) {
      after_[earlier].erase(gone);
      after_[earlier].insert(kept);
    });
  }

  std::vector<NodeIndex> of_;
  std::vector<Set> before_;
  std::vector<Set> after_;
};

template <class Visit>
void for_each_edge(const Graph& graph, const Visit& visit) {
  for (NodeIndex to = 0; to < graph.nodes.size(); ++to) {
    for (const ValueIndex input : graph.nodes[to].inputs) {
      if (input == absent || graph.values[input].constant) continue;
      const NodeIndex from = graph.values[input].producer;
      if (from != no_node) visit(from, to);
    }
  }
}

}  // namespace

std::vector<std::vector<NodeIndex>> convex_groups(const Graph& graph,
                                                  const std::vector<bool>& is_eligible) {
  const size_t count = graph.nodes.size();
  Clusters clusters(count);
  for_each_edge(graph, [&](NodeIndex from, NodeIndex to) { clusters.connect(from, to); });
  clusters.close();
  for_each_edge(graph, [&](NodeIndex from, NodeIndex to) {
    if (is_eligible[from] && is_eligible[to]) clusters.merge(from, to);
  });
  std::vector<std::vector<NodeIndex>> members(count);
  for (NodeIndex node = 0; node < count; ++node) {
    if (is_eligible[node]) members[clusters.of(node)].push_back(node);
  }
  std::erase_if(members, [](const auto& group) { return group.empty(); });
  return members;
}

}  // namespace castor::onnx
