// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind.hpp"

#include <algorithm>

#include "ir/infer.hpp"

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

/// Where the operands of a nest come from; nests name values of the canonical function.
std::vector<OperandOrigin> operand_origins(const Function& canonical, const jit::Nest& nest) {
  std::vector<OperandOrigin> origins;
  for (ValueId value : nest.inputs) {
    const auto& parameters = canonical.parameters;
    const auto at = std::find(parameters.begin(), parameters.end(), value);
    if (at != parameters.end()) {
      origins.push_back({OperandOrigin::Kind::input, static_cast<size_t>(at - parameters.begin())});
      continue;
    }
    for (const Operation& operation : canonical.operations) {
      if (operation.op != OpKind::constant || operation.results[0] != value) continue;
      origins.push_back({OperandOrigin::Kind::constant, 0, operation.data->bytes.data()});
    }
  }
  for (uint32_t output : nest.outputs) {
    origins.push_back({OperandOrigin::Kind::output, output});
  }
  return origins;
}

/// Tensors below this many bytes are never stored past the caches.
constexpr int64_t least_streaming_bytes = int64_t{1} << 20;

/// The code of a nest in a form: what compiling made ahead, or from the cache.
Status find_code(const Compiled& compiled, const jit::Nest& nest, const jit::NestForm& form,
                 NestCodePtr& code) {
  if (form == jit::NestForm::dense(nest.operands())) {
    code = compiled.dense[static_cast<size_t>(&nest - compiled.nests.data())];
    return {};
  }
  Result<NestCodePtr> found = compiled.store->cache.get(nest, form, compiled.target);
  if (!found.ok()) return found.error();
  code = std::move(found).value();
  return {};
}

/// By operand, the strides over the nest's extents.
std::vector<Dims> operand_strides(const BoundNest& nest, const BoundState& bound,
                                  const Dims& extents) {
  std::vector<Dims> strides;
  for (const OperandOrigin& origin : nest.operands) {
    strides.push_back(origin.kind == OperandOrigin::Kind::input ? bound.inputs[origin.index].strides
                      : origin.kind == OperandOrigin::Kind::output
                          ? bound.outputs[origin.index].strides
                          : dense_strides(extents));
  }
  return strides;
}

/// The code of a nest in a form, with its argument block.
Status bind_code(const Compiled& compiled, const jit::Nest& nest, const jit::IterationSpace& space,
                 BoundCode& bound) {
  if (Status status = find_code(compiled, nest, space.form, bound.code); !status) return status;
  bound.arguments = jit::pack_arguments(nest, space);
  bound.access = space.form.access;
  return {};
}

bool has_streamed_output(const jit::Nest& nest, const jit::Target& target) {
  return std::ranges::any_of(nest.program.sinks, [&](const jit::LanePort& sink) {
    return jit::has_streaming_stores(target, sink.element);
  });
}

/// Code with streaming stores, where the tensors are dense and large enough to profit.
Status bind_streaming(const Compiled& compiled, const jit::Nest& nest, jit::NestForm form,
                      BoundNest& bound) {
  if (form != jit::NestForm::dense(nest.operands())) return {};
  if (bound.bytes < least_streaming_bytes) return {};
  if (!has_streamed_output(nest, compiled.target)) return {};
  form.stores = jit::Stores::streaming;
  return find_code(compiled, nest, form, bound.streaming);
}

/// Code for sub-byte operands that begin at any element, where the main code cannot take them.
Status bind_any_start(const Compiled& compiled, const jit::Nest& nest, jit::IterationSpace space,
                      std::span<const jit::OperandStorage> storage, BoundNest& bound) {
  const jit::NestForm form = jit::bitwise_form(space.form, storage);
  if (form == space.form) return {};
  space.form = form;
  return bind_code(compiled, nest, space, bound.any_start);
}

/// Picks the code for one nest and fills its argument blocks as far as binding can.
Status bind_nest(const Compiled& compiled, const jit::Nest& nest, const BoundState& bound,
                 BoundNest& result) {
  const Dims& extents = bound.outputs[nest.outputs.front()].shape;
  result.operands = operand_origins(*compiled.canonical, nest);
  const int64_t count = element_count(extents).value_or(0);
  if (count == 0) return {};
  std::vector<jit::OperandStorage> storage;
  for (size_t k = 0; k < nest.operands(); ++k) {
    storage.push_back(nest.storage(k));
    result.bytes += byte_size(nest.element(k), count).value_or(0);
  }
  const jit::IterationSpace space =
      jit::iteration_space(extents, operand_strides(result, bound, extents), storage);
  result.sub_byte = nest.has_sub_byte_operand();
  result.first_base = jit::ArgumentLayout(nest.operands(), space.form.rank).base(0);
  if (Status status = bind_code(compiled, nest, space, result.main); !status) return status;
  if (Status status = bind_streaming(compiled, nest, space.form, result); !status) return status;
  return bind_any_start(compiled, nest, space, storage, result);
}

Status bind_nests(BoundState& bound) {
  const Compiled& compiled = *bound.kernel->compiled;
  if (!compiled.interpreted_because.empty()) return {};
  for (const jit::Nest& nest : compiled.nests) {
    BoundNest result;
    if (Status status = bind_nest(compiled, nest, bound, result); !status) return status;
    bound.nests.push_back(std::move(result));
  }
  return {};
}

/// Which outputs may be written in place of which inputs. Nests run in order: an output's nest may
/// not be followed by one that reads the input.
std::vector<bool> find_in_place(const BoundState& bound) {
  const size_t outputs = bound.outputs.size();
  std::vector<bool> allowed(bound.inputs.size() * outputs, false);
  for (size_t i = 0; i < bound.inputs.size(); ++i) {
    for (size_t o = 0; o < outputs; ++o) {
      allowed[i * outputs + o] = same_walk(bound.inputs[i], bound.outputs[o]);
    }
  }
  std::vector<uint32_t> written;  // by the nests before the one looked at
  for (size_t n = 0; n < bound.nests.size(); ++n) {
    for (const OperandOrigin& origin : bound.nests[n].operands) {
      if (origin.kind != OperandOrigin::Kind::input) continue;
      for (uint32_t output : written) allowed[origin.index * outputs + output] = false;
    }
    const std::vector<uint32_t>& now = bound.kernel->compiled->nests[n].outputs;
    written.insert(written.end(), now.begin(), now.end());
  }
  return allowed;
}

Status check_counts(const Function& function, size_t input_shapes, size_t strides) {
  const size_t inputs = function.parameters.size();
  if (Status status = check_count("input shapes", input_shapes, inputs); !status) return status;
  if (strides == 0) return {};
  return check_count("strides (inputs and outputs)", strides, inputs + function.results.size());
}

}  // namespace

Result<std::shared_ptr<const BoundState>> bind_kernel(std::shared_ptr<const KernelState> kernel,
                                                      std::span<const Dims> input_shapes,
                                                      std::span<const Dims> strides) {
  if (Status status = check_counts(*kernel->function, input_shapes.size(), strides.size());
      !status) {
    return status.error();
  }
  auto bound = std::make_shared<BoundState>();
  bound->kernel = std::move(kernel);
  if (Status status = bind_tensors(*bound, input_shapes, strides); !status) return status.error();
  if (Status status = bind_nests(*bound); !status) return status.error();
  bound->in_place_allowed = find_in_place(*bound);
  return std::shared_ptr<const BoundState>(std::move(bound));
}

}  // namespace castor::detail
