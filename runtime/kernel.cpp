// SPDX-License-Identifier: Apache-2.0
// The methods of Kernel and BoundKernel, and what every run goes through.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "ir/interpreter/interpreter.hpp"
#include "runtime/bind/bind.hpp"
#include "runtime/bind/bound_code.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/call/fold_call.hpp"
#include "runtime/call/nest_call.hpp"
#include "runtime/call/padding_call.hpp"
#include "runtime/call/row_block_call.hpp"
#include "runtime/call/sub_byte_call.hpp"
#include "runtime/call/tiled_call.hpp"
#include "runtime/check/check_count.hpp"
#include "runtime/check/check_overlap.hpp"
#include "runtime/compiled.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/memory/call_scratch.hpp"
#include "runtime/observe/observer.hpp"
#include "runtime/requantize/requantization.hpp"

namespace castor {

namespace {

using detail::BoundState;
using detail::ElementwiseStep;
using detail::OperandOrigin;

Error lost_tasks() {
  return {ErrorCode::invalid_argument,
          "the executor has thrown, or not run each of its tasks once; outputs are incomplete"};
}

/// Number and views of the tensors.
Status check_tensors(const BoundState& bound, std::span<const ConstView> inputs,
                     std::span<const View> outputs) {
  if (!detail::is_array_of(bound.inputs.size(), inputs)) {
    return detail::check_array("inputs", inputs, bound.inputs.size());
  }
  if (!detail::is_array_of(bound.outputs.size(), outputs)) {
    return detail::check_array("outputs", outputs, bound.outputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (Status status = check_view(bound.inputs[i], inputs[i]); !status) return status;
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (Status status = check_view(bound.outputs[o], outputs[o]); !status) return status;
  }
  return {};
}

Error no_policy(StorePolicy stores) {
  return Error{ErrorCode::invalid_argument,
               fmt::format("stores {}; expected 0 to {} (automatic, cached, streaming)",
                           static_cast<int>(stores), static_cast<int>(StorePolicy::streaming))};
}

/// Whether streaming code may store to these outputs: each a whole number of elements away from the
/// alignment, all equally many; rows too if the first ones are. Where sub-byte operands go along,
/// that is a number of whole groups.
bool outputs_align(const ElementwiseStep& step, std::span<const View> outputs,
                   const jit::Target& target) {
  const int64_t unit = step.sub_byte ? storage_group : 1;
  int64_t common = -1;
  for (size_t k = step.first_output; k < step.operands.size(); ++k) {
    const auto& [origin, element, matches_space] = step.operands[k];
    if (!jit::has_streaming_stores(target, element)) continue;
    const int64_t bits = bits_of(element);
    const bool in_scratch = origin.kind == OperandOrigin::Kind::scratch;  // which is aligned
    const int64_t begin = in_scratch
                              ? origin.displacement
                              : detail::address(detail::origin_of(outputs[origin.index]), element);
    const int64_t missing = (-begin & (jit::streaming_alignment - 1)) * 8;
    if (missing % (bits * unit) != 0 || (common >= 0 && missing / bits != common)) return false;
    common = missing / bits;
  }
  return true;
}

bool streams(const ElementwiseStep& step, std::span<const View> outputs, StorePolicy policy,
             const jit::Target& target) {
  if (step.streaming == nullptr || policy == StorePolicy::cached) return false;
  const bool wanted =
      policy == StorePolicy::streaming || static_cast<size_t>(step.bytes) > jit::host().llc_bytes;
  return wanted && outputs_align(step, outputs, target);
}

/// Runs the steps of one call, whose tensors are checked.
struct StepRunner {
  const BoundState& bound;
  const detail::CallMemory& memory;
  StorePolicy stores;
  bool in_place;

  /// One step after the other.
  void run_all() const {
    for (const detail::Step& step : bound.steps) {
      const detail::WorkTimer timer(memory.profile, 0, detail::Work::nest);
      std::visit(*this, step);
      if (memory.profile != nullptr) [[unlikely]]
        add_time(step, timer);
    }
  }
  /// The steps of blocks of rows take their times themselves.
  [[gnu::noinline, gnu::cold]] static void add_time(const detail::Step& step,
                                                    const detail::WorkTimer& timer) {
    if (std::holds_alternative<detail::RowBlockStep>(step)) return;
    const size_t nest = std::visit([](const detail::StepBase& any) { return any.nest; }, step);
    timer.done_for(nest, {});
  }

  void operator()(const detail::EmptyStep&) const {}
  void operator()(const detail::PaddingStep& step) const { detail::run_padding(step, memory); }
  void operator()(const ElementwiseStep& step) const {
    const bool streaming =
        !in_place && streams(step, memory.outputs, stores, bound.kernel->compiled->target);
    const KernelCode<jit::NestSpec>& code = streaming ? *step.streaming : *step.main.code;
    if (step.sub_byte) {
      detail::run_sub_byte_step(bound.outputs, step, streaming, memory);
    } else if (step.tiles) {
      detail::call_tiled(step, code, memory);
    } else {
      detail::call(step, code, step.main, memory);
    }
  }
  void operator()(const detail::FoldStep& step) const { detail::run_fold(step, memory); }
  void operator()(const detail::RowBlockStep& step) const {
    const auto run = [this](const BoundState& block, const detail::CallMemory& part) {
      StepRunner{block, part, stores, in_place}.run_all();
    };
    detail::run_row_blocks(step, memory, run);
  }
  void operator()(const detail::ConvolutionStep& step) const {
    detail::run_convolution(step, memory);
  }
  void operator()(const detail::RequantizeStep& step) const {
    (*this)(detail::prepare_method(step, memory));
  }
  void operator()(const detail::TableStep& step) const { detail::run_byte_tables(step, memory); }
};

/// The threads of the call's executor, or else of the runtime's.
detail::CallTasks tasks_of(const BoundState& bound, const RunOptions& options) {
  Executor* own = bound.kernel->compiled->executor.get();
  return detail::CallTasks(options.executor != nullptr ? options.executor : own);
}

/// Memory for the check of overlap, which comes before anything else uses the scratch.
std::span<std::byte> overlap_work(const BoundState& bound, const detail::CallScratch& scratch) {
  return {scratch.data(), scratch.data() == nullptr ? 0 : bound.scratch_bytes};
}

/// Runs all steps. Refuses scales that the function does not take.
Status run_steps(const BoundState& bound, const detail::CallMemory& memory, StorePolicy stores,
                 bool in_place) {
  if (Status status = detail::check_scales(bound.scales, memory.inputs); !status) return status;
  StepRunner{bound, memory, stores, in_place}.run_all();
  if (memory.tasks != nullptr && memory.tasks->has_failed()) return lost_tasks();
  return {};
}

/// All of BoundKernel::run; `profile` may be null. Throws what memory and callbacks throw.
Status run_call(const BoundState& bound, std::span<const ConstView> inputs,
                std::span<const View> outputs, const RunOptions& options,
                detail::CallProfile* profile) {
  if (Status status = check_tensors(bound, inputs, outputs); !status) return status;
  if (options.stores > StorePolicy::streaming) return no_policy(options.stores);
  detail::CallTasks tasks = tasks_of(bound, options);
  if (!options.scratch.empty() || !bound.keeps_scratch) {
    Status status = detail::check_scratch(bound, options.scratch, tasks.max(), inputs, outputs);
    if (!status) return status;
  }
  const detail::CallScratch scratch(bound, options.scratch, tasks);
  const OverlapRules rules = bound.overlap_rules();
  bool in_place = false;
  if (Status status = check_overlap(rules, inputs, outputs, overlap_work(bound, scratch), in_place);
      !status) {
    return status;
  }
  if (!bound.interpreted_because.empty()) {
    return interpret(*bound.kernel->function, inputs, outputs);
  }
  const detail::CallMemory memory{
      inputs, outputs, scratch.data(), tasks.max() > 1 ? &tasks : nullptr, scratch.of_tasks(),
      profile};
  return run_steps(bound, memory, options.stores, in_place);
}

}  // namespace

const Function& Kernel::function() const { return *state_->function; }

Engine Kernel::engine() const {
  return state_->compiled->interpreted_because.empty() ? Engine::jit : Engine::interpreter;
}

std::string_view Kernel::engine_reason() const { return detail::reason_of(*state_->compiled); }

std::optional<Tier> Kernel::tier() const {
  if (engine() != Engine::jit) return std::nullopt;
  return state_->compiled->target.tier;
}

Result<BoundKernel> Kernel::bind(std::span<const Dims> input_shapes, std::span<const Dims> strides,
                                 const BindOptions& options) const {
  return detail::guarded_call([&]() -> Result<BoundKernel> {
    Result<std::shared_ptr<const BoundState>> bound =
        detail::bind_kernel(state_, input_shapes, strides, options);
    if (!bound.ok()) {
      const Observer* observer = state_->compiled->observer.get();
      if (observer != nullptr) observer->refused("bind @" + state_->function->name, bound.error());
      return bound.error();
    }
    return BoundKernel(std::move(bound).value());
  });
}

Result<BoundKernel> Kernel::bind(std::initializer_list<Dims> input_shapes,
                                 const BindOptions& options) const {
  return bind(std::span(input_shapes.begin(), input_shapes.size()), {}, options);
}

Result<BoundKernel> Kernel::bind(std::span<const ConstView> inputs, std::span<const View> outputs,
                                 const BindOptions& options) const {
  return detail::guarded_call([&]() -> Result<BoundKernel> {
    const Function& bound_function = function();
    Status status = detail::check_array("inputs", inputs, bound_function.parameters.size());
    if (status) status = detail::check_array("outputs", outputs, bound_function.results.size());
    if (!status) return status.error();
    std::vector<Dims> shapes;
    std::vector<Dims> strides;
    for (const ConstView& input : inputs) {
      shapes.push_back(input.shape);
      strides.push_back(input.strides);
    }
    for (const View& output : outputs) strides.push_back(output.strides);
    return bind(shapes, strides, options);
  });
}

Status BoundKernel::run(std::span<const ConstView> inputs, std::span<const View> outputs,
                        const RunOptions& options) const {
  return detail::guarded_call([&] { return run_call(*state_, inputs, outputs, options, nullptr); });
}

Status detail::run_profiled(const BoundState& bound, std::span<const ConstView> inputs,
                            std::span<const View> outputs, const RunOptions& options,
                            CallProfile& profile) {
  return guarded_call([&] { return run_call(bound, inputs, outputs, options, &profile); });
}

Status detail::run_checked(const BoundState& bound, std::span<const ConstView> inputs,
                           std::span<const View> outputs, const RunOptions& options,
                           bool in_place) {
  CallTasks tasks = tasks_of(bound, options);
  const CallScratch scratch(bound, options.scratch, tasks);
  const CallMemory memory{inputs, outputs, scratch.data(), tasks.max() > 1 ? &tasks : nullptr,
                          scratch.of_tasks()};
  return run_steps(bound, memory, options.stores, in_place);
}

size_t BoundKernel::scratch_bytes(int tasks) const {
  try {
    return detail::scratch_bytes(*state_, tasks < 1 ? tasks_of(*state_, {}).max() : tasks);
  } catch (...) {  // the executor failed
    return SIZE_MAX;
  }
}

std::span<const Dims> BoundKernel::output_shapes() const { return state_->output_shapes; }

std::optional<Tier> BoundKernel::tier() const {
  if (engine() != Engine::jit) return std::nullopt;
  return state_->target.tier;
}

size_t BoundKernel::code_bytes() const { return detail::code_bytes(*state_); }

Engine BoundKernel::engine() const {
  return state_->interpreted_because.empty() ? Engine::jit : Engine::interpreter;
}

std::string_view BoundKernel::engine_reason() const { return detail::reason_of(*state_); }

}  // namespace castor
