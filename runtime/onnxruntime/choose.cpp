// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnxruntime/choose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "runtime/onnx/groups.hpp"
#include "runtime/onnxruntime/fusions.hpp"

namespace castor::onnxruntime {

namespace {

using onnx::Graph;
using onnx::Node;
using onnx::NodeIndex;
using onnx::Value;
using onnx::ValueIndex;
using onnx::Verdict;

bool sums_floats(const Graph& graph, const Node& node) {
  const bool is_sum = is_one_of(node, {"ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2",
                                       "ReduceSumSquare", "GlobalAveragePool"});
  const auto type = is_sum ? graph.values[node.inputs[0]].element : std::nullopt;
  return is_sum && (!type || is_float(*type));
}

/// Whether the weights are a matrix for which a call of the group costs little.
bool has_many_weights(const Graph& graph, const Node& node) {
  constexpr int64_t many = 1 << 14;
  const std::optional<Shape>& shape = graph.values[node.inputs[1]].shape;
  if (!shape) return false;
  int64_t count = 1;
  for (const Dim& dim : *shape) {
    // An extent that is unknown counts as one.
    if (dim.is_fixed()) count = std::min(count * std::min(dim.extent, many), many);
  }
  return count >= many;
}

/// Whether a quantized convolution reads an image: at most one k group of channels at each of
/// several kernel positions.
bool is_stem(const Graph& graph, const Node& node) {
  constexpr size_t weights = 3;
  const std::optional<Shape>& shape = graph.values[node.inputs[weights]].shape;
  if (!shape || shape->size() < 3) return false;
  const Dim& channels = (*shape)[1];
  const auto is_long = [](const Dim& extent) { return extent.is_fixed() && extent.extent > 1; };
  return channels.is_fixed() && channels.extent <= 4 &&
         std::any_of(shape->begin() + 2, shape->end(), is_long);
}

/// A quantized convolution: dense ones are about as fast with ONNX Runtime (1 to 1.1 times), unless
/// there are tiles or they are stems. (ResNet-50's stem takes it 0.94 ms, castor 0.30.) They are
/// taken all the same: around a stem or a grouped one, what is between them then stays in one
/// group.
double convolution_gain(const Graph& graph, const Node& node, bool has_tiles) {
  if (node.integer("group", 1) > 1) return 2.4;
  if (has_tiles) return 2;
  return is_stem(graph, node) ? 3 : 1;
}

/// Without VNNI ONNX Runtime multiplies u8 by i8 in three instructions for castor's four, with sums
/// of pairs that saturate.
double gain_without_vnni(const Graph& graph, const Node& node) {
  if (node.op_type == "MatMulInteger") return has_many_weights(graph, node) ? 0.9 : 0.5;
  if (node.op_type != "ConvInteger") return 0.6;
  return graph.values[node.inputs[1]].element == ElementType::i8 ? 4 : 1.1;
}

/// How many times as fast as ONNX Runtime's CPU provider a product is, from whole models:
/// tools/ort-compare.
double gain_of(const Graph& graph, const Node& node, Products products) {
  if (products == Products::widened) return gain_without_vnni(graph, node);
  if (node.op_type == "MatMulInteger") return has_many_weights(graph, node) ? 2 : 0.9;
  if (is_one_of(node, {"QLinearMatMul"}) || node.op_type == "QGemm") return 1.1;
  if (node.op_type == "QLinearConv") {
    return convolution_gain(graph, node, products == Products::tiles);
  }
  const auto weights = graph.values[node.inputs[1]].element;
  return weights == ElementType::i8 ? 20 : 3.5;
}

constexpr std::string_view after_fusion = "ONNX Runtime fuses it with what comes before";

class Chooser {
 public:
  Chooser(const Graph& graph, const std::vector<Verdict>& verdicts, const ChoiceOptions& options)
      : graph_(graph), options_(options), is_eligible_(graph.nodes.size()) {
    choice_.left.resize(graph.nodes.size());
    for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
      choice_.left[index] = reason(index, verdicts[index]);
      is_eligible_[index] = choice_.left[index].empty();
    }
    if (takes_all()) return;
    for (NodeIndex index = 0; index < graph.nodes.size(); ++index) leave_quantized_unit(index);
    for (NodeIndex index = 0; index < graph.nodes.size(); ++index) leave_lone_quantizer(index);
  }

  Choice choice() {
    for (auto& group : convex_groups(graph_, is_eligible_, onnx::Remainder::engine)) {
      const double gain = expected_gain(group);
      if (takes_all() || (gain >= options_.min_gain && gain > 0)) {
        choice_.groups.push_back(std::move(group));
        continue;
      }
      for (const NodeIndex index : group) {
        choice_.left[index] =
            gain == 0 ? "no integer product is connected with it"
                      : fmt::format("its group is expected to be {:.2f} times as fast", gain);
      }
    }
    return std::move(choice_);
  }

 private:
  /// Whether the user wants everything that castor can compute, however fast it is.
  bool takes_all() const { return options_.min_gain == 0; }

  /// Why a node is left whatever is around it; empty where nothing speaks against it.
  std::string reason(NodeIndex index, const Verdict& verdict) const {
    const Node& node = graph_.nodes[index];
    if (verdict.kind == Verdict::Kind::left) return verdict.reason;
    if (verdict.kind == Verdict::Kind::folded) return "it follows from constants";
    if (is_product(graph_, node) || takes_all()) return {};
    if (leads_fusions(graph_, node)) return "ONNX Runtime is as fast";
    if (sums_floats(graph_, node)) return "sums of floats would have another order";
    if (is_after_fusion(node)) return std::string(after_fusion);
    if (is_before_fusion(node)) return "ONNX Runtime fuses it with what comes next";
    return {};
  }

  /// Whether a node that ONNX Runtime fuses computes what this one reads, or one that is left for
  /// that reason does.
  bool is_after_fusion(const Node& node) const {
    return std::ranges::any_of(node.inputs, [&](ValueIndex input) {
      if (input == onnx::absent) return false;
      const NodeIndex producer = graph_.values[input].producer;
      if (producer == onnx::no_node || is_product(graph_, graph_.nodes[producer])) {
        return false;
      }
      const bool is_fused = !is_eligible_[producer] && is_elementwise_of(producer);
      return leads_fusions(graph_, graph_.nodes[producer]) || is_fused;
    });
  }
  bool is_before_fusion(const Node& node) const {
    if (!node.has_output(0)) return false;
    const std::vector<NodeIndex>& readers = graph_.values[node.outputs[0]].consumers;
    return !readers.empty() && std::ranges::all_of(readers, [&](NodeIndex reader) {
      return ends_fusions(graph_.nodes[reader]);
    });
  }
  bool is_elementwise_of(NodeIndex index) const { return choice_.left[index] == after_fusion; }

  void leave(NodeIndex index, std::string_view why) {
    if (!is_eligible_[index]) return;
    is_eligible_[index] = false;
    choice_.left[index] = why;
  }

  void leave_quantized_unit(NodeIndex index) {
    if (is_eligible_[index]) return;
    for (const NodeIndex other : quantized_unit_around(graph_, index)) {
      leave(other, "ONNX Runtime fuses it with the " + graph_.nodes[index].op_type + " beside it");
    }
  }

  /// What quantizes operands of nodes that are left is left as well: it is fused with them.
  void leave_lone_quantizer(NodeIndex index) {
    const Node& node = graph_.nodes[index];
    if (!is_eligible_[index] || node.op_type != "DynamicQuantizeLinear") return;
    const bool serves_us =
        node.has_output(0) &&
        std::ranges::any_of(graph_.values[node.outputs[0]].consumers,
                            [&](NodeIndex consumer) { return bool{is_eligible_[consumer]}; });
    if (!serves_us) leave(index, "no integer product reads it");
  }

  /// The mean over a group's products; 0 where it has none.
  double expected_gain(const std::vector<NodeIndex>& group) const {
    double sum = 0;
    int count = 0;
    for (const NodeIndex index : group) {
      if (!is_product(graph_, graph_.nodes[index])) continue;
      sum += gain_of(graph_, graph_.nodes[index], options_.products);
      ++count;
    }
    return count == 0 ? 0 : sum / count;
  }

  const Graph& graph_;
  ChoiceOptions options_;
  std::vector<bool> is_eligible_;
  Choice choice_;
};

}  // namespace

Choice choose(const Graph& graph, const std::vector<Verdict>& verdicts,
              const ChoiceOptions& options) {
  return Chooser(graph, verdicts, options).choice();
}

}  // namespace castor::onnxruntime
