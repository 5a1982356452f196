// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind/bind.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/verify/infer.hpp"
#include "jit/float_environment.hpp"
#include "runtime/bind/bind_nest.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/bind/row_blocks.hpp"
#include "runtime/check/check_count.hpp"
#include "runtime/compiled.hpp"
#include "runtime/conv/convolution_output.hpp"
#include "runtime/memory/runtime_memory.hpp"
#include "runtime/observe/observer.hpp"

namespace castor::detail {

namespace {

std::string input_name(const Function& function, size_t index) {
  return fmt::format("input %{}", function.values[function.parameters[index]].name);
}

std::string output_name(const Function& function, size_t index) {
  return fmt::format("output {} (%{})", index, function.values[function.results[index]].name);
}

Dims strides_of(std::span<const Dims> strides, size_t index) {
  return strides.empty() ? Dims() : strides[index];
}

/// Completes the tensors of inputs and outputs.
Status bind_tensors(BoundState& bound, std::span<const Dims> input_shapes,
                    std::span<const Dims> strides) {
  const Function& function = *bound.kernel->function;
  Result<BoundShapes> shapes = bind_shapes(function, input_shapes);
  if (!shapes.ok()) return shapes.error();
  for (size_t i = 0; i < input_shapes.size(); ++i) {
    Result<BoundTensor> tensor =
        bind_tensor(input_name(function, i), function.type_of(function.parameters[i]).element,
                    input_shapes[i], strides_of(strides, i), false);
    if (!tensor.ok()) return tensor.error();
    bound.inputs.push_back(std::move(tensor).value());
  }
  for (size_t i = 0; i < function.results.size(); ++i) {
    const ValueId value = function.results[i];
    Result<BoundTensor> tensor =
        bind_tensor(output_name(function, i), function.type_of(value).element,
                    shapes->values[value], strides_of(strides, input_shapes.size() + i), true);
    if (!tensor.ok()) return tensor.error();
    bound.output_shapes.push_back(tensor->shape);
    bound.outputs.push_back(std::move(tensor).value());
  }
  return {};
}

/// Steps with code; or, where executable memory is refused, none, and the reason.
Status bind_engine(BoundState& bound, std::span<const Dims> input_shapes,
                   std::optional<int64_t> block_bytes) {
  bound.target = bound.kernel->compiled->target;
  bound.lower_tier_because = bound.kernel->compiled->lower_tier_because;
  bound.interpreted_because = bound.kernel->compiled->interpreted_because;
  Status status =
      bind_nests(bound, input_shapes, block_bytes.value_or(row_block_bytes(bound.target)));
  if (status.ok() || status.error().code != ErrorCode::executable_memory) return status;
  const Observer* observer = bound.kernel->compiled->observer.get();
  if (observer != nullptr) {
    observer->refused("code of @" + bound.kernel->function->name, status.error());
  }
  bound.interpreted_because = status.error().message;
  bound.steps.clear();
  bound.scratch_bytes = 0;
  return {};
}

/// How much scratch a call takes, and what of it the kernel keeps.
void bind_scratch(BoundState& bound, const BindOptions& options) {
  bound.keeps_scratch = options.scratch == ScratchOwner::kernel;
  if (!bound.interpreted_because.empty()) return;
  const size_t work = overlap_work_bytes(bound.inputs.size() + bound.outputs.size());
  bound.scratch_bytes = jit::round_up(std::max(bound.scratch_bytes, work), scratch_alignment);
  if (!bound.keeps_scratch || bound.scratch_bytes == 0) return;
  const MemorySourcePtr& memory = bound.kernel->compiled->memory->scratch;
  bound.scratch = ScratchPool(memory, bound.scratch_bytes);
  bound.task_scratch = TaskScratchPool(memory, bound.scratch_bytes);
}

/// Adds the reads and writes of steps, which run one after the other; an epilogue runs with its
/// convolution.
class StepOrder {
 public:
  explicit StepOrder(const BoundState& bound)
      : bound_(bound), order_(bound.inputs.size(), bound.outputs.size()) {
    add_steps(bound);
  }
  InPlaceOrder take() { return std::move(order_); }

 private:
  void add_steps(const BoundState& bound) {
    for (const Step& step : bound.steps) {
      ++number_;
      std::visit([&](const auto& kind) { add(kind); }, step);
    }
  }
  void add(const StepBase& step) {
    for (const auto& [origin, element, matches_space] : step.operands) {
      if (origin.kind == OperandOrigin::Kind::output) order_.write(number_, origin.index);
      if (origin.kind == OperandOrigin::Kind::input)
        order_.read(number_, origin.index, matches_space);
    }
  }
  void add(const ConvolutionStep& step) {
    add(static_cast<const StepBase&>(step));
    if (step.epilogue) add(static_cast<const StepBase&>(*step.epilogue));
  }
  /// The order within a block is that within all rows, but later blocks read again what is not cut
  /// as results are.
  void add(const RowBlockStep& step) {
    add_steps(*step.block);
    ++number_;
    for (size_t i = 0; i < step.input_strides.size(); ++i) {
      if (!is_cut_as_results(step, i)) order_.read(number_, i, false);
    }
  }

  /// Whether the input's outermost axes are the row axes.
  bool is_cut_as_results(const RowBlockStep& step, size_t input) const {
    const BoundTensor& tensor = bound_.inputs[input];
    for (int axis = 0; axis < step.extents.rank(); ++axis) {
      if (step.extents[axis] == 1) continue;
      if (tensor.shape.rank() <= axis || tensor.shape[axis] != step.extents[axis]) return false;
      if (tensor.strides[axis] != step.input_strides[input][axis]) return false;
    }
    return true;
  }

  const BoundState& bound_;
  InPlaceOrder order_;
  uint32_t number_ = 0;
};

Status check_counts(const Function& function, std::span<const Dims> input_shapes,
                    std::span<const Dims> strides) {
  const size_t inputs = function.parameters.size();
  if (Status status = check_array("input shapes", input_shapes, inputs); !status) return status;
  if (strides.empty()) return {};
  return check_array("strides (inputs and outputs)", strides, inputs + function.results.size());
}

Status check_options(const BindOptions& options) {
  if (options.scratch <= ScratchOwner::caller) return {};
  return Error{
      ErrorCode::invalid_argument,
      fmt::format("scratch {}; expected 0 to {} (kernel, caller)",
                  static_cast<int>(options.scratch), static_cast<int>(ScratchOwner::caller))};
}

}  // namespace

Result<std::shared_ptr<const BoundState>> bind_kernel(std::shared_ptr<const KernelState> kernel,
                                                      std::span<const Dims> input_shapes,
                                                      std::span<const Dims> strides,
                                                      const BindOptions& options,
                                                      std::optional<int64_t> block_bytes) {
  if (Status status = check_counts(*kernel->function, input_shapes, strides); !status) {
    return status.error();
  }
  if (Status status = check_options(options); !status) return status.error();
  const jit::KernelFloatEnvironment environment;  // plans weigh costs in floats
  auto bound = std::make_shared<BoundState>();
  bound->kernel = std::move(kernel);
  if (Status status = bind_tensors(*bound, input_shapes, strides); !status) return status.error();
  if (Status status = bind_engine(*bound, input_shapes, block_bytes); !status)
    return status.error();
  bind_scratch(*bound, options);
  bound->scales = scale_checks(*bound->kernel->function, bound->inputs);
  bound->order = StepOrder(*bound).take();
  return std::shared_ptr<const BoundState>(std::move(bound));
}

}  // namespace castor::detail
