// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnx/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/onnx/groups.hpp"
#include "runtime/onnx/quantized_units.hpp"
#include "runtime/onnx/rules.hpp"

namespace castor::onnx {

namespace {

/// Which nodes the graph's outputs depend on. Its nodes are in order.
std::vector<bool> read_nodes(const Graph& graph) {
  std::vector<bool> is_read(graph.nodes.size());
  for (NodeIndex index = static_cast<NodeIndex>(graph.nodes.size()); index-- > 0;) {
    for (const ValueIndex output : graph.nodes[index].outputs) {
      if (output == absent) continue;
      const Value& value = graph.values[output];
      is_read[index] = is_read[index] || value.is_output ||
                       std::ranges::any_of(value.consumers,
                                           [&](NodeIndex consumer) { return is_read[consumer]; });
    }
  }
  return is_read;
}

/// Whether a value that a unit computes is read outside of it.
bool leaves(const Graph& graph, const std::vector<NodeIndex>& nodes, ValueIndex index) {
  const Value& value = graph.values[index];
  return value.is_output || std::ranges::any_of(value.consumers, [&](NodeIndex consumer) {
           return !std::ranges::binary_search(nodes, consumer);
         });
}

}  // namespace

Result<Unit> make_unit(const Graph& graph, std::vector<NodeIndex> nodes, std::string name) {
  Unit unit;
  Translation into(graph, std::move(name), Constants::embedded);
  for (const NodeIndex index : nodes) {
    translate(graph.nodes[index], into);
    if (into.refusal()) {
      return Error{ErrorCode::unsupported,
                   fmt::format("{}: {}", describe(graph, index), *into.refusal())};
    }
  }
  for (const NodeIndex index : nodes) {
    for (const ValueIndex output : graph.nodes[index].outputs) {
      if (output == absent || !leaves(graph, nodes, output)) continue;
      into.builder().result(into.value_of(output));
      unit.results.push_back(output);
    }
  }
  auto function = into.builder().finish();
  if (!function) return function.error();
  unit.nodes = std::move(nodes);
  unit.function = std::move(*function);
  unit.parameters = into.parameters();
  return unit;
}

bool Plan::is_complete() const {
  return std::ranges::none_of(
      verdicts, [](const Verdict& verdict) { return verdict.kind == Verdict::Kind::left; });
}

Result<FunctionPtr> whole_function(const Plan& plan) {
  const Graph& graph = plan.graph;
  Translation into(graph, identifier(graph.name), Constants::embedded);
  for (const ValueIndex input : graph.inputs) into.tensor(input);
  if (into.refusal()) return Error{ErrorCode::unsupported, "the inputs: " + *into.refusal()};
  for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
    const Verdict& verdict = plan.verdicts[index];
    const bool does_nothing =
        verdict.kind == Verdict::Kind::folded || verdict.kind == Verdict::Kind::unread;
    if (does_nothing) continue;
    if (verdict.kind == Verdict::Kind::left) into.refuse(verdict.reason);
    translate(graph.nodes[index], into);
    if (into.refusal()) {
      return Error{ErrorCode::unsupported,
                   fmt::format("{}: {}", describe(graph, index), *into.refusal())};
    }
  }
  for (const ValueIndex output : graph.outputs) into.builder().result(into.tensor(output));
  if (into.refusal()) return Error{ErrorCode::unsupported, *into.refusal()};
  return into.builder().finish();
}

Result<Plan> make_plan(Graph graph, const PlanOptions& options) {
  if (Status status = connect(graph); !status) return status.error();
  std::vector<std::string> read;
  for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
    read.push_back(describe(graph, index));
    graph.nodes[index].origins = {index};
  }
  if (!options.strict) {
    if (Status status = fuse_quantized_units(graph); !status) return status.error();
  }
  auto verdicts = examine(graph);
  if (!verdicts) return verdicts.error();
  const std::vector<bool> is_read = read_nodes(graph);
  for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
    if (!is_read[index]) (*verdicts)[index] = {Verdict::Kind::unread, {}};
  }
  Plan plan{std::move(read), std::move(graph), std::move(*verdicts), {}};
  std::vector<bool> is_taken;
  for (const Verdict& verdict : plan.verdicts) {
    is_taken.push_back(verdict.kind == Verdict::Kind::taken);
  }
  for (std::vector<NodeIndex>& nodes : convex_groups(plan.graph, is_taken)) {
    auto unit = make_unit(plan.graph, nodes, fmt::format("unit_{}", plan.units.size()));
    if (unit) {
      plan.units.push_back(std::move(*unit));
      continue;
    }
    for (const NodeIndex index : nodes) {
      plan.verdicts[index] = {Verdict::Kind::left, unit.error().message};
    }
  }
  return plan;
}

}  // namespace castor::onnx
