// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnxruntime/provider.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "runtime/onnx/extent_names.hpp"
#include "runtime/onnx/quantized_units.hpp"
#include "runtime/onnxruntime/choose.hpp"
#include "runtime/onnxruntime/guarded.hpp"
#include "runtime/onnxruntime/read_graph.hpp"

namespace castor::onnxruntime {

namespace {

Provider& provider(abi::OrtEp* ep) { return *static_cast<Provider*>(ep); }

/// Without a tier nothing is compiled.
Products products_of(std::optional<Tier> tier) {
  if (!tier) return Products::widened;
  const jit::FeatureSet features = jit::info(*tier).features;
  if (features.has(jit::Feature::amx_int8)) return Products::tiles;
  const bool has_dot =
      features.has(jit::Feature::avx512_vnni) || features.has(jit::Feature::avx_vnni);
  return has_dot ? Products::dot : Products::widened;
}

/// A fused node: what ONNX Runtime calls in each run.
struct ComputeNode final : abi::OrtNodeComputeInfo {
  Host host;
  std::shared_ptr<GroupKernel> group;
  std::vector<size_t>
      inputs;  ///< indices of the fused node's inputs, for each of the kernel's parameters
  std::vector<size_t> outputs;  ///< for each of its results
  int threads = 1;
};

const ComputeNode& node(abi::OrtNodeComputeInfo* info) { return *static_cast<ComputeNode*>(info); }

abi::OrtStatus* create_state(abi::OrtNodeComputeInfo* info, abi::OrtNodeComputeContext*,
                             void** state) {
  *state = info;  // all that a call needs never changes
  return nullptr;
}

abi::OrtStatus* run_node(abi::OrtNodeComputeInfo* info, void*, abi::OrtKernelContext* context) {
  const ComputeNode& at = node(info);
  return guarded(at.host, [&] {
    return compute(at.host, *at.group, at.inputs, at.outputs, at.threads, context);
  });
}

void release_state(abi::OrtNodeComputeInfo*, void*) {}

/// The names of values, in the order of the list; those left out are empty.
Result<std::vector<std::string>> names_of(const Host& host,
                                          const std::vector<const abi::OrtValueInfo*>& values) {
  std::vector<std::string> names;
  for (const abi::OrtValueInfo* value : values) {
    if (value == nullptr) {
      names.emplace_back();
      continue;
    }
    auto name = text(host, value, abi::GetValueInfoName);
    if (!name) return name.error();
    names.push_back(std::move(*name));
  }
  return names;
}

/// The indices of names in a list that has them all.
Result<std::vector<size_t>> indices_of(const std::vector<std::string>& names,
                                       const std::vector<std::string>& among) {
  std::vector<size_t> indices;
  for (const std::string& name : names) {
    const auto at = std::ranges::find(among, name);
    if (at == among.end()) {
      return Error{ErrorCode::internal, fmt::format("the fused node has no value {}", name)};
    }
    indices.push_back(static_cast<size_t>(at - among.begin()));
  }
  return indices;
}

std::string joined(std::set<std::string> names) {
  return fmt::format("{}", fmt::join(names, "\n"));
}

/// Names a group by what the given nodes compute.
Result<std::string> key_of(const Host& host, const std::vector<const abi::OrtNode*>& nodes) {
  std::set<std::string> names;
  for (const abi::OrtNode* node : nodes) {
    const auto outputs =
        list<const abi::OrtValueInfo*>(host, node, abi::Node_GetNumOutputs, abi::Node_GetOutputs);
    if (!outputs) return outputs.error();
    const auto found = names_of(host, *outputs);
    if (!found) return found.error();
    names.insert(found->begin(), found->end());
  }
  return joined(std::move(names));
}

}  // namespace

/// The graph where no two unknown extents are said to be equal, examined when a group first asks.
class GraphWithoutNames {
 public:
  explicit GraphWithoutNames(const onnx::Graph& graph) : graph_(graph) {}

  /// The function of a unit's nodes, with the same parameters and results; null where there is
  /// none.
  FunctionPtr function_of(std::vector<onnx::NodeIndex> nodes, const onnx::Unit& unit) {
    if (!is_usable_) {
      forget_extent_names(graph_);
      is_usable_ = examine(graph_, onnx::Remainder::engine).ok();
    }
    if (!*is_usable_) return nullptr;
    const auto made = make_unit(graph_, std::move(nodes), unit.function->name);
    const bool is_alike =
        made && made->parameters == unit.parameters && made->results == unit.results;
    return is_alike ? made->function : nullptr;
  }

 private:
  onnx::Graph graph_;
  std::optional<bool> is_usable_;
};

Provider::Provider(const Host& host, const abi::OrtLogger* logger, Options options, Runtime runtime)
    : abi::OrtEp{},
      host_(host),
      log_(host, logger),
      options_(options),
      runtime_(std::move(runtime)) {
  ort_version_supported = host.version();
  GetName = [](const abi::OrtEp*) { return provider_name; };
  GetCapability = [](abi::OrtEp* ep, const abi::OrtGraph* graph, abi::OrtEpGraphSupportInfo* info) {
    return guarded(provider(ep).host(), [&] { return provider(ep).claim(graph, info); });
  };
  Compile = [](abi::OrtEp* ep, const abi::OrtGraph** graphs, const abi::OrtNode** fused_nodes,
               size_t count, abi::OrtNodeComputeInfo** infos, abi::OrtNode**) {
    return guarded(provider(ep).host(),
                   [&] { return provider(ep).compile(graphs, fused_nodes, count, infos); });
  };
  ReleaseNodeComputeInfos = [](abi::OrtEp*, abi::OrtNodeComputeInfo** infos, size_t count) {
    for (size_t i = 0; i < count; ++i) delete static_cast<ComputeNode*>(infos[i]);
  };
}

Status Provider::claim(const abi::OrtGraph* source, abi::OrtEpGraphSupportInfo* info) {
  if (!options_.is_enabled) {
    log_(abi::ORT_WARNING,
         "castor takes nothing: compiled models (ep.context_enable) are not "
         "supported");
    return {};
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto read = read_graph(host_, source);
  if (!read) return read.error();
  onnx::Graph graph = read->graph;
  for (onnx::NodeIndex index = 0; index < graph.nodes.size(); ++index) {
    graph.nodes[index].origins = {index};
  }
  if (Status status = fuse_quantized_units(graph, onnx::Remainder::engine); !status) return status;
  GraphWithoutNames without_names(graph);
  const auto verdicts = examine(graph, onnx::Remainder::engine);
  if (!verdicts) return verdicts.error();
  Choice choice = choose(graph, *verdicts, {options_.min_gain, products_of(runtime_.tier())});
  for (std::vector<onnx::NodeIndex>& group : choice.groups) {
    const std::vector<onnx::NodeIndex> nodes = group;
    const Status claimed = claim_group(*read, graph, without_names, std::move(group), info);
    if (claimed) continue;
    for (const onnx::NodeIndex index : nodes) choice.left[index] = claimed.error().message;
  }
  explain(graph, choice.left);
  explain_time(std::chrono::steady_clock::now() - begin);
  return {};
}

/// Whether a group that was claimed computes this one, under the same names: ONNX Runtime asks
/// again for a graph whose functions it has inlined, and branches of a model may be alike.
bool Provider::is_claimed_as(const Claimed& claimed, const onnx::Graph& graph,
                             const onnx::Unit& unit) {
  const auto are = [&](const std::vector<onnx::ValueIndex>& values,
                       const std::vector<std::string>& names) {
    return std::ranges::equal(values, names, {}, [&](onnx::ValueIndex index) {
      return std::string_view(graph.values[index].name);
    });
  };
  return are(unit.parameters, claimed.kernel->parameters()) &&
         are(unit.results, claimed.kernel->results()) &&
         same_computation(*claimed.function, *unit.function);
}

Status Provider::claim_group(const HostGraph& read, const onnx::Graph& graph,
                             GraphWithoutNames& without_names, std::vector<onnx::NodeIndex> nodes,
                             abi::OrtEpGraphSupportInfo* info) {
  std::vector<const abi::OrtNode*> taken;
  for (const onnx::NodeIndex index : nodes) {
    for (const onnx::NodeIndex origin : graph.nodes[index].origins) {
      taken.push_back(read.nodes[origin]);
    }
  }
  const size_t count = taken.size();
  const std::string name = fmt::format("group_{}", claimed_.size());
  auto unit = make_unit(graph, nodes, name);
  if (!unit) return unit.error();
  const auto key = key_of(host_, taken);
  if (!key) return key.error();
  const auto found = claimed_.find(*key);
  if (found == claimed_.end()) {
    FunctionPtr other;
    if (onnx::has_equal_extents(*unit->function)) {
      other = without_names.function_of(std::move(nodes), *unit);
    }
    auto kernel = GroupKernel::make(runtime_, graph, *unit, std::move(other));
    if (!kernel) return kernel.error();
    if ((*kernel)->kernel().engine() != Engine::jit) {
      return Error{ErrorCode::unsupported, std::string((*kernel)->kernel().engine_reason())};
    }
    claimed_.emplace(*key, Claimed{unit->function, std::move(*kernel)});
  } else if (!is_claimed_as(found->second, graph, *unit)) {
    return Error{ErrorCode::unsupported,
                 "another graph of the model computes something else under these names"};
  }
  const abi::OrtNodeFusionOptions options{host_.version(), true};
  const Status added = host_.taken(host_.provider_function(abi::EpGraphSupportInfo_AddNodesToFuse)(
      info, taken.data(), taken.size(), &options));
  if (!added) return Error{added.error().code, added.error().message};
  const std::string& claimed = claimed_.at(*key).function->name;
  log_(abi::ORT_VERBOSE, fmt::format("castor takes {} nodes as {}", count, claimed));
  return {};
}

void Provider::explain(const onnx::Graph& graph, const std::vector<std::string>& reasons) const {
  const abi::OrtLoggingLevel level = options_.explain ? abi::ORT_WARNING : abi::ORT_VERBOSE;
  for (onnx::NodeIndex index = 0; index < graph.nodes.size(); ++index) {
    if (reasons[index].empty()) continue;
    log_(level, fmt::format("castor leaves {}: {}", describe(graph, index), reasons[index]));
  }
}

void Provider::explain_time(std::chrono::nanoseconds spent) const {
  const auto milliseconds = [](std::chrono::nanoseconds time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  std::chrono::nanoseconds binding{};
  for (const auto& [key, group] : claimed_) binding += group.kernel->bind_time();
  const std::chrono::nanoseconds code(runtime_.statistics().code_compile_ns);
  log_(
      options_.explain ? abi::ORT_WARNING : abi::ORT_VERBOSE,
      fmt::format("castor looked at a graph for {:.1f} ms; {} groups so far: machine code {:.1f} "
                  "ms, binding with its code and packed weights {:.1f} ms",
                  milliseconds(spent), claimed_.size(), milliseconds(code), milliseconds(binding)));
}

Status Provider::compile(const abi::OrtGraph* const* graphs, const abi::OrtNode* const* fused_nodes,
                         size_t count, abi::OrtNodeComputeInfo** infos) {
  for (size_t i = 0; i < count; ++i) {
    const auto info = compile_group(graphs[i], fused_nodes[i]);
    if (!info) {
      // ONNX Runtime releases nothing of a call that failed.
      for (size_t made = 0; made < i; ++made) delete static_cast<ComputeNode*>(infos[made]);
      return info.error();
    }
    infos[i] = *info;
  }
  return {};
}

Result<abi::OrtNodeComputeInfo*> Provider::compile_group(const abi::OrtGraph* graph,
                                                         const abi::OrtNode* fused) {
  const auto nodes =
      list<const abi::OrtNode*>(host_, graph, abi::Graph_GetNumNodes, abi::Graph_GetNodes);
  if (!nodes) return nodes.error();
  const auto key = key_of(host_, *nodes);
  if (!key) return key.error();
  const auto claimed = claimed_.find(*key);
  if (claimed == claimed_.end()) {
    return Error{ErrorCode::internal, "a group that was not claimed is to be compiled"};
  }
  const auto inputs =
      list<const abi::OrtValueInfo*>(host_, fused, abi::Node_GetNumInputs, abi::Node_GetInputs);
  if (!inputs) return inputs.error();
  const auto outputs =
      list<const abi::OrtValueInfo*>(host_, fused, abi::Node_GetNumOutputs, abi::Node_GetOutputs);
  if (!outputs) return outputs.error();
  const auto input_names = names_of(host_, *inputs);
  if (!input_names) return input_names.error();
  const auto output_names = names_of(host_, *outputs);
  if (!output_names) return output_names.error();
  const GroupKernel& group = *claimed->second.kernel;
  auto input_indices = indices_of(group.parameters(), *input_names);
  if (!input_indices) return input_indices.error();
  auto output_indices = indices_of(group.results(), *output_names);
  if (!output_indices) return output_indices.error();
  auto made = std::make_unique<ComputeNode>();
  made->ort_version_supported = host_.version();
  made->CreateState = create_state;
  made->Compute = run_node;
  made->ReleaseState = release_state;
  made->host = host_;
  made->group = claimed->second.kernel;
  made->inputs = std::move(*input_indices);
  made->outputs = std::move(*output_indices);
  made->threads = options_.threads;
  return static_cast<abi::OrtNodeComputeInfo*>(made.release());
}

}  // namespace castor::onnxruntime
