// SPDX-License-Identifier: Apache-2.0
#include "tools/explorer/made_kernels.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "jit/dump/annotate.hpp"
#include "jit/plan/access_pattern.hpp"
#include "runtime/observe/code_name.hpp"
#include "tools/recording/recording_runtime.hpp"

namespace castor::tools::explorer {

namespace {

/// The bytes of a code, by which it is known.
std::string bytes_of(const jit::MachineCode& code) {
  return {reinterpret_cast<const char*>(code.bytes.data()), code.bytes.size()};
}

std::set<std::string> bytes_of(std::span<const jit::DumpedNest> dumped) {
  std::set<std::string> all;
  for (const jit::DumpedNest& nest : dumped) {
    for (const jit::DumpedCode& each : nest.codes) all.insert(bytes_of(each.code));
  }
  return all;
}

Result<std::vector<Dims>> likely_inputs(const Function& function) {
  const Result<BoundShapes> shapes = jit::likely_shapes(function);
  if (!shapes) return shapes.error();
  std::vector<Dims> inputs;
  for (const ValueId parameter : function.parameters) inputs.push_back(shapes->values[parameter]);
  return inputs;
}

/// Says of each kernel which nest needs it first. Of those that compiling makes, it is the nest
/// whose code it is, of others the one with which binding makes it, and not without.
class Finder {
 public:
  Finder(const RecordingRuntime& runtime, const FunctionPtr& function,
         const RecordedTensors& tensors, std::span<const jit::Nest> nests)
      : runtime_(runtime), function_(function), tensors_(tensors), nests_(nests) {}

  Status find(std::vector<MadeKernel>& kernels) {
    std::vector<MadeKernel*> missing;
    for (MadeKernel& each : kernels) {
      if (!find_likely(each)) missing.push_back(&each);
    }
    for (size_t first = 0; first < nests_.size() && !missing.empty();) {
      const size_t end = end_of(first);
      if (Status status = find_bound(first, end, missing); !status) return status;
      first = end;
    }
    return {};
  }

 private:
  /// Whether it is the likely code of a nest, with which binding does without it.
  bool find_likely(MadeKernel& kernel) const {
    if (kernel.made_by_binding) return false;
    for (size_t n = 0; n < nests_.size(); ++n) {
      if (nests_[n].convolution || nests_[n].requantization) continue;
      const jit::NestForm form = forms_.form_of(nests_[n], runtime_.target());
      const auto code = jit::emit_annotated(*function_, nests_[n], form, runtime_.target());
      if (!code || code->bytes != kernel.code.bytes) continue;
      kernel.nest = n;
      return true;
    }
    return false;
  }

  /// Takes those that binding the nests before `end` makes, and those before `first` do not.
  Status find_bound(size_t first, size_t end, std::vector<MadeKernel*>& missing) const {
    std::set<std::string> made;
    const bool is_last = end >= nests_.size();
    if (!is_last) {
      const auto recorded = runtime_.bind_first(end, function_, tensors_);
      if (!recorded) return recorded.error();
      for (const RecordedKernel& each : *recorded) made.insert(bytes_of(each.code));
    }
    std::erase_if(missing, [&](MadeKernel* each) {
      if (!is_last && !made.contains(bytes_of(each->code))) return false;
      each->nest = first;
      return true;
    });
    return {};
  }

  /// A convolution is bound with the nest that takes its sums.
  size_t end_of(size_t first) const {
    const auto& fusion = nests_[first].fusion;
    return first + (fusion && fusion->is_fused() ? 2 : 1);
  }

  const RecordingRuntime& runtime_;
  const FunctionPtr& function_;
  const RecordedTensors tensors_;
  const std::span<const jit::Nest> nests_;
  const jit::LikelyForms forms_{*function_};
};

/// The operation that all code of a nest's kernels is of, if it is one.
std::optional<uint32_t> only_operation(const Function& function, const jit::Nest& nest) {
  if (nest.convolution) return nest.convolution;
  if (nest.requantization) return nest.requantization;
  const std::vector<uint32_t> operations = operations_of(function, nest);
  return operations.size() == 1 ? std::optional(operations.front()) : std::nullopt;
}

}  // namespace

Result<std::vector<MadeKernel>> made_kernels(const FunctionPtr& function, const jit::Target& target,
                                             std::span<const jit::DumpedNest> dumped) {
  const Result<std::vector<Dims>> shapes = likely_inputs(*function);
  if (!shapes) return shapes.error();
  const RecordingRuntime runtime(target);
  const RecordedTensors tensors = {*shapes, {}};
  auto recorded = runtime.bind(function, tensors);
  if (!recorded) return recorded.error();
  std::vector<MadeKernel> kernels;
  std::set<std::string> shown = bytes_of(dumped);
  for (RecordedKernel& each : *recorded) {
    if (!shown.insert(bytes_of(each.code)).second) continue;
    if (!each.annotated) return each.annotated.error();
    kernels.push_back(
        {0, std::move(each.name), std::move(each.annotated).value(), each.made_by_binding});
  }
  const std::vector<jit::Nest> nests = jit::plan_nests(*function, target);
  if (Status status = Finder(runtime, function, tensors, nests).find(kernels); !status) {
    return status.error();
  }
  for (MadeKernel& each : kernels) {
    const auto operation = only_operation(*function, nests[each.nest]);
    if (!operation) continue;
    note_operation(*function, *operation, jit::NotedCode::without_operation, each.code);
  }
  return kernels;
}

}  // namespace castor::tools::explorer
