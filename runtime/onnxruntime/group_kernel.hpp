// SPDX-License-Identifier: Apache-2.0
// A group of nodes as one kernel, and the calls of it.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "castor/castor.hpp"
#include "runtime/onnx/plan.hpp"
#include "runtime/onnxruntime/host.hpp"

namespace castor::onnxruntime {

/// A compiled group, named by its values. Immutable but for the kernels that it has bound; safe to
/// use from several threads.
class GroupKernel {
 public:
  /// Compiles the function, and binds it where all extents are known, so that calls find no
  /// mistakes. `without_names`: the same group where no two unknown extents are said to be equal,
  /// or null. ONNX Runtime does not look at these names, so calls may break what they say.
  static Result<std::shared_ptr<GroupKernel>> make(const Runtime& runtime, const onnx::Graph& graph,
                                                   const onnx::Unit& unit,
                                                   FunctionPtr without_names);

  const std::vector<std::string>& parameters() const { return parameters_; }
  const std::vector<std::string>& results() const { return results_; }
  const Kernel& kernel() const { return kernel_; }
  /// What binding took when the group was made: mostly packing of weights. 0 where extents are
  /// unknown: then calls bind.
  std::chrono::nanoseconds bind_time() const { return bind_time_; }

  /// A kernel bound to these extents of the parameters; that of the last call is found first.
  struct Bound {
    std::vector<Dims> shapes;
    BoundKernel kernel;
  };
  Result<std::shared_ptr<const Bound>> bound(const std::vector<ConstView>& inputs) const;

 private:
  GroupKernel(const Runtime& runtime, Kernel kernel, FunctionPtr without_names)
      : runtime_(runtime), kernel_(std::move(kernel)), without_names_(std::move(without_names)) {}
  Result<BoundKernel> bind(const std::vector<Dims>& shapes) const;

  /// Sets of extents that are kept; the oldest one goes first.
  static constexpr size_t max_bound = 16;

  Runtime runtime_;
  Kernel kernel_;
  FunctionPtr without_names_;  ///< null: there is none; compiled when a call needs it
  std::vector<std::string> parameters_;
  std::vector<std::string> results_;
  std::chrono::nanoseconds bind_time_{};
  mutable std::atomic<std::shared_ptr<const Bound>> last_;
  mutable std::mutex mutex_;
  mutable std::deque<std::shared_ptr<const Bound>> kept_;
};

/// ONNX Runtime's threads during one call.
class HostExecutor final : public Executor {
 public:
  HostExecutor(const Host& host, const abi::OrtKernelContext* context, int threads)
      : host_(host), context_(context), threads_(threads) {}
  int tasks() const override { return threads_; }
  int64_t wake_up_ns() const override { return 2'000; }  // workers spin
  void run(int count, void (*task)(void* context, int index), void* context) override;

 private:
  const Host& host_;
  const abi::OrtKernelContext* context_;
  int threads_;
};

/// One call: reads the inputs, asks for the outputs, runs. `inputs` and `outputs` are the indices
/// of the kernel's parameters and results among those of the fused node.
Status compute(const Host& host, const GroupKernel& group, const std::vector<size_t>& inputs,
               const std::vector<size_t>& outputs, int threads, abi::OrtKernelContext* context);

}  // namespace castor::onnxruntime
