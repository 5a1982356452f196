// SPDX-License-Identifier: Apache-2.0
// The methods of Kernel and BoundKernel, and what every run goes through.
#include <algorithm>
#include <memory>
#include <new>

#include "ir/interpreter.hpp"
#include "runtime/bind.hpp"
#include "runtime/bound_code.hpp"
#include "runtime/check_overlap.hpp"
#include "runtime/nest_call.hpp"
#include "runtime/requantization.hpp"
#include "runtime/sub_byte_call.hpp"
#include "runtime/tiled_call.hpp"

namespace castor {

namespace {

using detail::BoundNest;
using detail::BoundState;
using detail::OperandOrigin;

Error no_memory() { return {ErrorCode::out_of_memory, "no memory left"}; }

Status check_call(const BoundState& bound, std::span<const ConstView> inputs,
                  std::span<const View> outputs, bool& in_place) {
  if (Status status = detail::check_count("inputs", inputs.size(), bound.inputs.size()); !status) {
    return status;
  }
  if (Status status = detail::check_count("outputs", outputs.size(), bound.outputs.size());
      !status) {
    return status;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (Status status = check_view(bound.inputs[i], inputs[i]); !status) return status;
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (Status status = check_view(bound.outputs[o], outputs[o]); !status) return status;
  }
  const OverlapRules rules{bound.inputs, bound.outputs, bound.in_place_allowed};
  return check_overlap(rules, inputs, outputs, in_place);
}

/// Whether streaming code may store to these outputs: each a whole number of elements away from the
/// alignment, all equally many; rows too if the first ones are. Where sub-byte operands go along,
/// that is a number of whole groups.
bool outputs_align(const BoundNest& nest, std::span<const View> outputs,
                   const jit::Target& target) {
  const int64_t unit = nest.sub_byte ? storage_group : 1;
  int64_t common = -1;
  for (size_t k = nest.first_output; k < nest.operands.size(); ++k) {
    const ElementType element = nest.elements[k];
    if (!jit::has_streaming_stores(target, element)) continue;
    const int64_t bits = bits_of(element);
    const OperandOrigin& operand = nest.operands[k];
    const bool in_scratch = operand.kind == OperandOrigin::Kind::scratch;  // which is aligned
    const int64_t begin =
        in_scratch ? 0 : detail::address(detail::origin_of(outputs[operand.index]), element);
    const int64_t missing = (-begin & (jit::streaming_alignment - 1)) * 8;
    if (missing % (bits * unit) != 0 || (common >= 0 && missing / bits != common)) return false;
    common = missing / bits;
  }
  return true;
}

bool streams(const BoundNest& nest, std::span<const View> outputs, StorePolicy policy,
             const jit::Target& target) {
  if (nest.streaming == nullptr || policy == StorePolicy::cached) return false;
  const bool wanted = policy == StorePolicy::streaming ||
                      static_cast<size_t>(nest.bytes) > jit::host().last_cache_bytes;
  return wanted && outputs_align(nest, outputs, target);
}

void run_elementwise(const BoundState& bound, const BoundNest& nest, bool streaming,
                     const detail::CallMemory& memory) {
  const NestCode& code = streaming ? *nest.streaming : *nest.main.code;
  if (nest.sub_byte) {
    detail::run_sub_byte_nest(bound, nest, streaming, memory);
  } else if (nest.tiles) {
    detail::call_tiled(nest, code, memory);
  } else {
    detail::call(nest, code, nest.main, memory);
  }
}

/// Tasks beside the first that convolutions are shared out to: none for calls without an executor,
/// or without a convolution.
size_t more_tasks(const BoundState& bound, const Executor* executor) {
  if (executor == nullptr) return 0;
  const bool has_convolution = std::ranges::any_of(
      bound.nests, [](const BoundNest& nest) { return nest.convolution != nullptr; });
  return has_convolution ? static_cast<size_t>(std::max(executor->tasks(), 1) - 1) : 0;
}

}  // namespace

const Function& Kernel::function() const { return *state_->function; }

Engine Kernel::engine() const {
  return state_->compiled->interpreted_because.empty() ? Engine::jit : Engine::interpreter;
}

std::string_view Kernel::engine_reason() const { return state_->compiled->interpreted_because; }

std::optional<Tier> Kernel::tier() const {
  if (engine() != Engine::jit) return std::nullopt;
  return state_->compiled->target.tier;
}

Result<BoundKernel> Kernel::bind(std::span<const Dims> input_shapes,
                                 std::span<const Dims> strides) const {
  try {
    Result<std::shared_ptr<const BoundState>> bound =
        detail::bind_kernel(state_, input_shapes, strides);
    if (!bound.ok()) {
      const Observer* observer = state_->compiled->observer.get();
      if (observer != nullptr) observer->refused("bind @" + state_->function->name, bound.error());
      return bound.error();
    }
    return BoundKernel(std::move(bound).value());
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Result<BoundKernel> Kernel::bind(std::initializer_list<Dims> input_shapes) const {
  return bind(std::span(input_shapes.begin(), input_shapes.size()));
}

Result<BoundKernel> Kernel::bind(std::span<const ConstView> inputs,
                                 std::span<const View> outputs) const {
  try {
    std::vector<Dims> shapes;
    std::vector<Dims> strides;
    for (const ConstView& input : inputs) {
      shapes.push_back(input.shape);
      strides.push_back(input.strides);
    }
    for (const View& output : outputs) strides.push_back(output.strides);
    return bind(shapes, strides);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Status BoundKernel::run(std::span<const ConstView> inputs, std::span<const View> outputs,
                        const RunOptions& options) const {
  try {
    bool in_place = false;
    if (Status status = check_call(*state_, inputs, outputs, in_place); !status) return status;
    if (!state_->kernel->compiled->interpreted_because.empty()) {
      return interpret(*state_->kernel->function, inputs, outputs);
    }
    return detail::run_checked(*state_, inputs, outputs, options, in_place);
  } catch (const std::bad_alloc&) {  // of scratch, of an error's message, or of the interpreter
    return no_memory();
  }
}

Status detail::run_checked(const BoundState& bound, std::span<const ConstView> inputs,
                           std::span<const View> outputs, const RunOptions& options,
                           bool in_place) {
  if (Status status = check_scales(bound.scales, inputs); !status) return status;
  const ScratchPool::Block scratch(bound.scratch);
  CallMemory memory{inputs, outputs, scratch.data()};
  const TaskScratchPool::Blocks task_scratch(bound.task_scratch,
                                             more_tasks(bound, options.executor));
  memory.executor = options.executor;
  memory.task_scratch = task_scratch.data();
  for (const BoundNest& each : bound.nests) {
    const BoundNest& nest = each.requantization ? prepare_requantization(each, memory) : each;
    if (nest.tables) {
      run_byte_tables(nest, memory);
    } else if (nest.convolution != nullptr) {
      run_convolution(*nest.convolution, nest, memory);
    } else if (nest.main.code != nullptr) {  // else there are no elements
      const bool streaming =
          !in_place && streams(nest, outputs, options.stores, bound.kernel->compiled->target);
      run_elementwise(bound, nest, streaming, memory);
    }
  }
  return {};
}

std::span<const Dims> BoundKernel::output_shapes() const { return state_->output_shapes; }

std::optional<Tier> BoundKernel::tier() const {
  if (engine() != Engine::jit) return std::nullopt;
  return state_->kernel->compiled->target.tier;
}

size_t BoundKernel::code_bytes() const { return detail::code_bytes(*state_); }

Engine BoundKernel::engine() const {
  return state_->kernel->compiled->interpreted_because.empty() ? Engine::jit : Engine::interpreter;
}

}  // namespace castor
