// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnxruntime/group_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/onnxruntime/read_graph.hpp"

namespace castor::onnxruntime {

namespace {

/// The parameters' extents where all are known.
std::optional<std::vector<Dims>> fixed_shapes(const Function& function) {
  std::vector<Dims> shapes;
  for (const ValueId parameter : function.parameters) {
    const Shape& shape = function.type_of(parameter).shape;
    if (!is_fixed(shape)) return std::nullopt;
    Dims& extents = shapes.emplace_back();
    for (const Dim& dim : shape) extents.push_back(dim.extent);
  }
  return shapes;
}

bool has_shapes(const GroupKernel::Bound& bound, const std::vector<ConstView>& inputs) {
  return std::ranges::equal(bound.shapes, inputs, {}, {}, &ConstView::shape);
}

}  // namespace

Result<std::shared_ptr<GroupKernel>> GroupKernel::make(const Runtime& runtime,
                                                       const onnx::Graph& graph,
                                                       const onnx::Unit& unit,
                                                       FunctionPtr without_names) {
  Result<Kernel> kernel = runtime.compile(unit.function);
  if (!kernel) return kernel.error();
  std::shared_ptr<GroupKernel> made(new GroupKernel(runtime, *kernel, std::move(without_names)));
  for (const onnx::ValueIndex index : unit.parameters) {
    made->parameters_.push_back(graph.values[index].name);
  }
  for (const onnx::ValueIndex index : unit.results) {
    made->results_.push_back(graph.values[index].name);
  }
  if (auto shapes = fixed_shapes(*unit.function)) {
    const auto begin = std::chrono::steady_clock::now();
    Result<BoundKernel> bound = kernel->bind(*shapes);
    if (!bound) return bound.error();
    made->bind_time_ = std::chrono::steady_clock::now() - begin;
    made->last_ = std::make_shared<const Bound>(Bound{std::move(*shapes), std::move(*bound)});
  }
  return made;
}

/// Where extents of one name differ, the function without names broadcasts or refuses them as the
/// operators do.
Result<BoundKernel> GroupKernel::bind(const std::vector<Dims>& shapes) const {
  Result<BoundKernel> bound = kernel_.bind(shapes);
  const bool may_be_names = !bound && bound.error().code == ErrorCode::invalid_argument;
  if (!may_be_names || without_names_ == nullptr) return bound;
  const Result<Kernel> other = runtime_.compile(without_names_);
  if (!other || other->engine() != Engine::jit) return bound;
  return other->bind(shapes);
}

Result<std::shared_ptr<const GroupKernel::Bound>> GroupKernel::bound(
    const std::vector<ConstView>& inputs) const {
  std::shared_ptr<const Bound> last = last_.load();
  if (last != nullptr && has_shapes(*last, inputs)) return last;
  const std::lock_guard lock(mutex_);
  const auto at =
      std::ranges::find_if(kept_, [&](const auto& bound) { return has_shapes(*bound, inputs); });
  if (at != kept_.end()) {
    last_ = *at;
    return *at;
  }
  std::vector<Dims> shapes;
  for (const ConstView& input : inputs) shapes.push_back(input.shape);
  Result<BoundKernel> made = bind(shapes);
  if (!made) return made.error();
  auto bound = std::make_shared<const Bound>(Bound{std::move(shapes), std::move(*made)});
  kept_.push_back(bound);
  if (kept_.size() > max_bound) kept_.pop_front();
  last_ = bound;
  return bound;
}

void HostExecutor::run(int count, void (*task)(void* context, int index), void* context) {
  struct Call {
    void (*task)(void* context, int index);
    void* context;
  } call{task, context};
  const auto step = [](void* user, size_t index) {
    const Call& made = *static_cast<const Call*>(user);
    made.task(made.context, static_cast<int>(index));
  };
  // castor notices tasks that were left out, and ends the call with an error.
  (void)host_(abi::KernelContext_ParallelFor, context_, +step, static_cast<size_t>(count),
              size_t{0}, static_cast<void*>(&call))
      .ok();
}

namespace {

size_t bytes_of(ElementType type, const Dims& shape) {
  const auto count = element_count(shape);
  return static_cast<size_t>(count ? byte_size(type, *count).value_or(0) : 0);
}

Result<ConstView> input_view(const Host& host, const abi::OrtKernelContext* context, size_t index,
                             ElementType expected) {
  const abi::OrtValue* value = nullptr;
  if (Status status = host(abi::KernelContext_GetInput, context, index, &value); !status) {
    return status.error();
  }
  const auto tensor = read_tensor(host, value);
  if (!tensor) return tensor.error();
  if (tensor->element != expected) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("input {} is not of {}", index, name_of(expected))};
  }
  return ConstView(tensor->data, expected, tensor->shape, bytes_of(expected, tensor->shape));
}

Result<View> output_view(const Host& host, abi::OrtKernelContext* context, size_t index,
                         ElementType type, const Dims& shape) {
  abi::OrtValue* value = nullptr;
  const Status asked = host(abi::KernelContext_GetOutput, context, index, shape.begin(),
                            static_cast<size_t>(shape.rank()), &value);
  if (!asked) return asked.error();
  void* data = nullptr;
  if (Status status = host(abi::GetTensorMutableData, value, &data); !status) {
    return status.error();
  }
  return View(data, type, shape, bytes_of(type, shape));
}

}  // namespace

Status compute(const Host& host, const GroupKernel& group, const std::vector<size_t>& inputs,
               const std::vector<size_t>& outputs, int threads, abi::OrtKernelContext* context) {
  const Function& function = group.kernel().function();
  std::vector<ConstView> sources;
  sources.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto view =
        input_view(host, context, inputs[i], function.type_of(function.parameters[i]).element);
    if (!view) return view.error();
    sources.push_back(*view);
  }
  const auto bound = group.bound(sources);
  if (!bound) return bound.error();
  const std::span<const Dims> shapes = (*bound)->kernel.output_shapes();
  std::vector<View> destinations;
  destinations.reserve(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto view = output_view(host, context, outputs[i],
                            function.type_of(function.results[i]).element, shapes[i]);
    if (!view) return view.error();
    destinations.push_back(*view);
  }
  HostExecutor executor(host, context, threads);
  return (*bound)->kernel.run(sources, destinations, {.executor = &executor});
}

}  // namespace castor::onnxruntime
