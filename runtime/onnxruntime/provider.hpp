// SPDX-License-Identifier: Apache-2.0
// The execution provider of one session.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "runtime/onnxruntime/group_kernel.hpp"
#include "runtime/onnxruntime/options.hpp"

namespace castor::onnxruntime {

class GraphWithoutNames;

/// What ONNX Runtime asks when a session is made. It translates and compiles groups when asked what
/// it can do, so that a group that was taken does not fail later.
class Provider final : public abi::OrtEp {
 public:
  Provider(const Host& host, const abi::OrtLogger* logger, Options options, Runtime runtime);

  Status claim(const abi::OrtGraph* graph, abi::OrtEpGraphSupportInfo* info);
  Status compile(const abi::OrtGraph* const* graphs, const abi::OrtNode* const* fused_nodes,
                 size_t count, abi::OrtNodeComputeInfo** infos);
  const Host& host() const { return host_; }

 private:
  /// A group that was claimed.
  struct Claimed {
    FunctionPtr function;
    std::shared_ptr<GroupKernel> kernel;
  };
  static bool is_claimed_as(const Claimed& claimed, const onnx::Graph& graph,
                            const onnx::Unit& unit);
  Status claim_group(const struct HostGraph& read, const onnx::Graph& graph,
                     GraphWithoutNames& without_names, std::vector<onnx::NodeIndex> nodes,
                     abi::OrtEpGraphSupportInfo* info);
  Result<abi::OrtNodeComputeInfo*> compile_group(const abi::OrtGraph* graph,
                                                 const abi::OrtNode* fused);
  void explain(const onnx::Graph& graph, const std::vector<std::string>& reasons) const;
  void explain_time(std::chrono::nanoseconds spent) const;

  Host host_;
  Log log_;
  Options options_;
  Runtime runtime_;
  /// By the names of the values that their nodes compute.
  std::map<std::string, Claimed> claimed_;
};

}  // namespace castor::onnxruntime
