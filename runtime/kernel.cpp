// SPDX-License-Identifier: Apache-2.0
// Kernels: binding shapes and strides, checking calls, running.
#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "ir/infer.hpp"
#include "ir/interpreter.hpp"
#include "runtime/state.hpp"

namespace castor {

namespace {

using detail::BoundNest;
using detail::BoundState;
using detail::Compiled;
using detail::KernelState;
using detail::OperandOrigin;

Error invalid(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

Error no_memory() { return {ErrorCode::out_of_memory, "no memory left"}; }

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

/// Picks the code for one nest and fills its argument block as far as binding can.
Result<BoundNest> bind_nest(const Compiled& compiled, size_t index, const BoundState& bound) {
  const jit::Nest& nest = compiled.nests[index];
  const Dims& extents = bound.outputs[nest.outputs.front()].shape;
  BoundNest result;
  result.operands = operand_origins(*compiled.canonical, nest);
  if (element_count(extents) == 0) return result;
  std::vector<Dims> strides;
  for (const OperandOrigin& origin : result.operands) {
    strides.push_back(origin.kind == OperandOrigin::Kind::input ? bound.inputs[origin.index].strides
                      : origin.kind == OperandOrigin::Kind::output
                          ? bound.outputs[origin.index].strides
                          : dense_strides(extents));
  }
  jit::IterationSpace space = jit::iteration_space(extents, strides);
  for (size_t k = 0; k < nest.operands(); ++k) {
    result.bytes += *element_count(extents) * (bits_of(nest.element(k)) / 8);
  }
  const bool dense = space.form == jit::NestForm::dense(nest.operands());
  if (Status status = find_code(compiled, nest, space.form, result.code); !status) {
    return status.error();
  }
  if (dense && result.bytes >= least_streaming_bytes) {
    space.form.stores = jit::Stores::streaming;
    if (Status status = find_code(compiled, nest, space.form, result.streaming); !status) {
      return status.error();
    }
  }
  result.arguments = jit::pack_arguments(nest, space);
  return result;
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

Status check_count(std::string_view what, size_t found, size_t expected) {
  if (found == expected) return {};
  return invalid(fmt::format("{} {} given; the function has {}", found, what, expected));
}

/// Refuses overlaps; `in_place` tells whether an output lies where an input does.
Status check_overlap(const BoundState& bound, std::span<const ConstView> inputs,
                     std::span<const View> outputs, bool& in_place) {
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Footprint written = footprint(bound.outputs[o], outputs[o]);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Footprint read = footprint(bound.inputs[i], inputs[i]);
      if (!may_overlap(bound.outputs[o], written, bound.inputs[i], read)) continue;
      if (written.begin != read.begin || !bound.in_place_allowed[i * outputs.size() + o]) {
        return invalid(
            fmt::format("{} overlaps {}; in place needs the same address, element size, "
                        "shape and strides, and no later use of the input",
                        bound.outputs[o].what, bound.inputs[i].what));
      }
      in_place = true;
    }
    for (size_t other = 0; other < o; ++other) {
      const Footprint at = footprint(bound.outputs[other], outputs[other]);
      if (may_overlap(bound.outputs[o], written, bound.outputs[other], at)) {
        return invalid(fmt::format("{} overlaps {}; outputs must be apart", bound.outputs[o].what,
                                   bound.outputs[other].what));
      }
    }
  }
  return {};
}

Status check_call(const BoundState& bound, std::span<const ConstView> inputs,
                  std::span<const View> outputs, bool& in_place) {
  if (Status status = check_count("inputs", inputs.size(), bound.inputs.size()); !status) {
    return status;
  }
  if (Status status = check_count("outputs", outputs.size(), bound.outputs.size()); !status) {
    return status;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (Status status = check_view(bound.inputs[i], inputs[i]); !status) return status;
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (Status status = check_view(bound.outputs[o], outputs[o]); !status) return status;
  }
  return check_overlap(bound, inputs, outputs, in_place);
}

template <class Pointer>
int64_t address(const BasicView<Pointer>& view) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(view.data)) +
         view.offset * (bits_of(view.element) / 8);
}

int64_t operand_address(const OperandOrigin& origin, std::span<const ConstView> inputs,
                        std::span<const View> outputs) {
  switch (origin.kind) {
    case OperandOrigin::Kind::input: return address(inputs[origin.index]);
    case OperandOrigin::Kind::output: return address(outputs[origin.index]);
    case OperandOrigin::Kind::constant: break;
  }
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(origin.constant));
}

/// Whether streaming code may store to these outputs: each address a multiple of the element's
/// size, and all equally far from the alignment, counted in elements.
bool outputs_align(const BoundNest& nest, std::span<const View> outputs) {
  int64_t common = -1;
  for (const OperandOrigin& origin : nest.operands) {
    if (origin.kind != OperandOrigin::Kind::output) continue;
    const int64_t size = bits_of(outputs[origin.index].element) / 8;
    const int64_t missing = -address(outputs[origin.index]) & (jit::streaming_alignment - 1);
    if (missing % size != 0 || (common >= 0 && missing / size != common)) return false;
    common = missing / size;
  }
  return true;
}

bool streams(const BoundNest& nest, std::span<const View> outputs, StorePolicy policy) {
  if (nest.streaming == nullptr || policy == StorePolicy::cached) return false;
  const bool wanted = policy == StorePolicy::streaming ||
                      static_cast<size_t>(nest.bytes) > jit::host().last_cache_bytes;
  return wanted && outputs_align(nest, outputs);
}

/// Calls the code with a copy of the argument block that has this call's pointers.
void run_nest(const BoundNest& nest, const NestCode& code, std::span<const ConstView> inputs,
              std::span<const View> outputs) {
  int64_t arguments[jit::most_argument_words];
  std::copy(nest.arguments.begin(), nest.arguments.end(), arguments);
  for (size_t k = 0; k < nest.operands.size(); ++k) {
    arguments[k] = operand_address(nest.operands[k], inputs, outputs);
  }
  code.entry()(arguments);
}

Result<std::shared_ptr<const BoundState>> bind_kernel(std::shared_ptr<const KernelState> kernel,
                                                      std::span<const Dims> input_shapes,
                                                      std::span<const Dims> strides) {
  const Function& function = *kernel->function;
  const size_t tensors = function.parameters.size() + function.results.size();
  if (Status status = check_count("input shapes", input_shapes.size(), function.parameters.size());
      !status) {
    return status.error();
  }
  if (!strides.empty()) {
    if (Status status = check_count("strides (inputs and outputs)", strides.size(), tensors);
        !status) {
      return status.error();
    }
  }
  auto bound = std::make_shared<BoundState>();
  bound->kernel = std::move(kernel);
  if (Status status = bind_tensors(*bound, input_shapes, strides); !status) return status.error();
  const Compiled& compiled = *bound->kernel->compiled;
  if (compiled.interpreted_because.empty()) {
    for (size_t i = 0; i < compiled.nests.size(); ++i) {
      Result<BoundNest> nest = bind_nest(compiled, i, *bound);
      if (!nest.ok()) return nest.error();
      bound->nests.push_back(std::move(nest).value());
    }
  }
  bound->in_place_allowed = find_in_place(*bound);
  return std::shared_ptr<const BoundState>(std::move(bound));
}

}  // namespace

const Function& Kernel::function() const { return *state_->function; }

Engine Kernel::engine() const {
  return state_->compiled->interpreted_because.empty() ? Engine::jit : Engine::interpreter;
}

std::string_view Kernel::engine_reason() const { return state_->compiled->interpreted_because; }

Result<BoundKernel> Kernel::bind(std::span<const Dims> input_shapes,
                                 std::span<const Dims> strides) const {
  try {
    Result<std::shared_ptr<const BoundState>> bound = bind_kernel(state_, input_shapes, strides);
    if (!bound.ok()) return bound.error();
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
    for (const BoundNest& nest : state_->nests) {
      if (nest.code == nullptr) continue;  // no elements
      const bool streaming = !in_place && streams(nest, outputs, options.stores);
      run_nest(nest, streaming ? *nest.streaming : *nest.code, inputs, outputs);
    }
    return {};
  } catch (const std::bad_alloc&) {  // of an error's message, or of the interpreter
    return no_memory();
  }
}

std::span<const Dims> BoundKernel::output_shapes() const { return state_->output_shapes; }

Engine BoundKernel::engine() const {
  return state_->kernel->compiled->interpreted_because.empty() ? Engine::jit : Engine::interpreter;
}

}  // namespace castor
