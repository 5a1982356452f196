// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnx/groups.hpp"

#include <algorithm>
#include <utility>

namespace castor::onnx {

namespace {

template <class Visit>
void for_each_edge(const Graph& graph, Remainder remainder, const Visit& visit) {
  for (NodeIndex to = 0; to < graph.nodes.size(); ++to) {
    for (const ValueIndex input : graph.nodes[to].inputs) {
      if (input == absent) continue;
      const Value& value = graph.values[input];
      const bool is_gone = value.constant && remainder == Remainder::nobody;
      if (value.producer != no_node && !is_gone) visit(value.producer, to);
    }
  }
}

/// Clusters of nodes, each named by its first node, in an order in which each comes after all that
/// it depends on. The order keeps the search for paths between two clusters to what is between
/// them, so that time and memory grow with the nodes and edges of the graphs that models have.
/// Where a graph is made to take a step for each pair of its nodes, the clusters stay as they are
/// after `max_steps`.
class Clusters {
 public:
  static constexpr size_t max_steps = size_t{1} << 28;  ///< a second or two

  Clusters(const Graph& graph, Remainder remainder)
      : of_(graph.nodes.size()),
        successors_(of_.size()),
        position_(of_.size()),
        at_(of_.size()),
        seen_(of_.size(), 0) {
    for (NodeIndex i = 0; i < of_.size(); ++i) of_[i] = position_[i] = at_[i] = i;
    for_each_edge(graph, remainder,
                  [&](NodeIndex from, NodeIndex to) { successors_[from].push_back(to); });
  }

  NodeIndex of(NodeIndex node) {
    while (of_[node] != node) node = of_[node] = of_[of_[node]];
    return node;
  }

  /// Makes the clusters of two nodes, where `from` computes what `to` reads, one, unless a path
  /// between them goes through a third one.
  void merge(NodeIndex from, NodeIndex to) {
    const NodeIndex a = of(from);
    const NodeIndex b = of(to);
    if (a == b || steps_ > max_steps || has_detour(a, b)) return;
    const NodeIndex kept = std::min(a, b);
    const NodeIndex gone = std::max(a, b);
    move(a, b, kept);
    of_[gone] = kept;
    std::vector<NodeIndex>& all = successors_[kept];
    std::vector<NodeIndex>& less = successors_[gone];
    if (all.size() < less.size()) std::swap(all, less);
    all.insert(all.end(), less.begin(), less.end());
    std::vector<NodeIndex>().swap(less);
  }

 private:
  /// Whether a path from `a` to `b` goes through a third cluster. If not, those before `b` that
  /// depend on `a` have been seen in this search.
  bool has_detour(NodeIndex a, NodeIndex b) {
    ++search_;
    has_dependents_ = false;
    std::vector<NodeIndex> open = {a};
    bool finds = false;
    while (!open.empty() && !finds) {
      const NodeIndex cluster = open.back();
      open.pop_back();
      std::vector<NodeIndex>& successors = successors_[cluster];
      size_t left = 0;
      steps_ += successors.size();
      for (const NodeIndex node : successors) {
        const NodeIndex successor = of(node);
        if (successor == cluster) continue;  // it has become part of it
        successors[left++] = successor;
        finds = finds || (successor == b && cluster != a);
        if (position_[successor] >= position_[b] || is_seen(successor)) continue;
        seen_[successor] = search_;
        has_dependents_ = true;
        open.push_back(successor);
      }
      successors.resize(left);
    }
    return finds;
  }
  bool is_seen(NodeIndex cluster) const { return seen_[cluster] == search_; }

  /// Puts the cluster that `a` and `b` become after what does not depend on `a`, and before what
  /// does. Positions of clusters that are gone are left at the front, so that the next one of a
  /// chain is near.
  void move(NodeIndex a, NodeIndex b, NodeIndex kept) {
    const size_t first = position_[a];
    const size_t last = position_[b];
    if (!has_dependents_) {  // nothing before `b` waits for `a`
      at_[first] = no_node;
      at_[last] = kept;
      position_[kept] = static_cast<NodeIndex>(last);
      return;
    }
    steps_ += last - first;
    std::vector<NodeIndex> order;
    std::vector<NodeIndex> dependents;
    for (size_t i = first; i <= last; ++i) {
      const NodeIndex cluster = std::exchange(at_[i], no_node);
      if (cluster == no_node || cluster == a || cluster == b) continue;
      (is_seen(cluster) ? dependents : order).push_back(cluster);
    }
    order.push_back(kept);
    order.insert(order.end(), dependents.begin(), dependents.end());
    size_t position = last + 1 - order.size();
    for (const NodeIndex cluster : order) {
      position_[cluster] = static_cast<NodeIndex>(position);
      at_[position++] = cluster;
    }
  }

  std::vector<NodeIndex> of_;
  std::vector<std::vector<NodeIndex>> successors_;  ///< nodes, by the cluster that they depend on
  std::vector<NodeIndex> position_;                 ///< in the order, by cluster
  std::vector<NodeIndex> at_;                       ///< clusters by position; no_node: none
  std::vector<uint32_t> seen_;                      ///< the last search that came to a cluster
  uint32_t search_ = 0;
  bool has_dependents_ = false;  ///< whether the last search saw any before its `b`
  size_t steps_ = 0;             ///< that searches and moves took
};

}  // namespace

std::vector<std::vector<NodeIndex>> convex_groups(const Graph& graph,
                                                  const std::vector<bool>& is_eligible,
                                                  Remainder remainder) {
  const size_t count = graph.nodes.size();
  Clusters clusters(graph, remainder);
  for_each_edge(graph, remainder, [&](NodeIndex from, NodeIndex to) {
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
