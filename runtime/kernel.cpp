// SPDX-License-Identifier: Apache-2.0
// Kernels: binding shapes and strides, checking calls, running.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <optional>

#include "ir/infer.hpp"
#include "ir/interpreter.hpp"
#include "ir/storage.hpp"
#include "runtime/check_overlap.hpp"
#include "runtime/state.hpp"

namespace castor {

namespace {

using detail::BoundCode;
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

/// Picks the code for one nest and fills its argument block as far as binding can.
Result<BoundNest> bind_nest(const Compiled& compiled, size_t index, const BoundState& bound) {
  const jit::Nest& nest = compiled.nests[index];
  const Dims& extents = bound.outputs[nest.outputs.front()].shape;
  BoundNest result;
  result.operands = operand_origins(*compiled.canonical, nest);
  const int64_t count = element_count(extents).value_or(0);
  if (count == 0) return result;
  std::vector<jit::OperandStorage> storage;
  for (size_t k = 0; k < nest.operands(); ++k) {
    storage.push_back(nest.storage(k));
    result.bytes += byte_size(nest.element(k), count).value_or(0);
  }
  jit::IterationSpace space =
      jit::iteration_space(extents, operand_strides(result, bound, extents), storage);
  result.sub_byte = nest.has_sub_byte_operand();
  result.first_base = jit::ArgumentLayout(nest.operands(), space.form.rank).base(0);
  if (Status status = bind_code(compiled, nest, space, result.main); !status) {
    return status.error();
  }
  const jit::NestForm form = space.form;
  const bool dense = form == jit::NestForm::dense(nest.operands());
  if (dense && result.bytes >= least_streaming_bytes &&
      has_streamed_output(nest, compiled.target)) {
    space.form.stores = jit::Stores::streaming;
    if (Status status = find_code(compiled, nest, space.form, result.streaming); !status) {
      return status.error();
    }
  }
  space.form = jit::bitwise_form(form, storage);
  if (space.form != form) {
    if (Status status = bind_code(compiled, nest, space, result.any_start); !status) {
      return status.error();
    }
  }
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
  const OverlapRules rules{bound.inputs, bound.outputs, bound.in_place_allowed};
  return check_overlap(rules, inputs, outputs, in_place);
}

/// Where an operand's elements are counted from, and the first one's number.
struct Origin {
  int64_t data = 0;
  int64_t offset = 0;
};

template <class Pointer>
Origin origin_of(const BasicView<Pointer>& view) {
  return {static_cast<int64_t>(reinterpret_cast<uintptr_t>(view.data)), view.offset};
}

Origin origin_of(const OperandOrigin& operand, std::span<const ConstView> inputs,
                 std::span<const View> outputs) {
  switch (operand.kind) {
    case OperandOrigin::Kind::input: return origin_of(inputs[operand.index]);
    case OperandOrigin::Kind::output: return origin_of(outputs[operand.index]);
    case OperandOrigin::Kind::constant: break;
  }
  return {static_cast<int64_t>(reinterpret_cast<uintptr_t>(operand.constant)), 0};
}

ElementType element_of(const OperandOrigin& operand, std::span<const ConstView> inputs,
                       std::span<const View> outputs) {
  return operand.kind == OperandOrigin::Kind::input ? inputs[operand.index].element
                                                    : outputs[operand.index].element;
}

/// Address of the first element; of sub-byte elements that of its byte.
int64_t address(const Origin& origin, ElementType element) {
  const int64_t bits = bits_of(element);
  return origin.data + origin.offset / storage_group * bits +
         origin.offset % storage_group * bits / 8;
}

/// Whether streaming code may store to these outputs: each a whole number of elements away from the
/// alignment, all equally many. Where sub-byte operands go along, that is a number of whole groups.
bool outputs_align(const BoundNest& nest, std::span<const View> outputs,
                   const jit::Target& target) {
  const int64_t unit = nest.sub_byte ? storage_group : 1;
  int64_t common = -1;
  for (const OperandOrigin& operand : nest.operands) {
    if (operand.kind != OperandOrigin::Kind::output) continue;
    const View& view = outputs[operand.index];
    if (!jit::has_streaming_stores(target, view.element)) continue;
    const int64_t bits = bits_of(view.element);
    const int64_t missing =
        (-address(origin_of(view), view.element) & (jit::streaming_alignment - 1)) * 8;
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

/// Whether a sub-byte operand that the main code takes as contiguous begins inside a byte, or
/// inside a group of the split layouts.
bool starts_inside_a_byte(const BoundNest& nest, std::span<const ConstView> inputs,
                          std::span<const View> outputs) {
  for (size_t k = 0; k < nest.operands.size(); ++k) {
    const OperandOrigin& operand = nest.operands[k];
    if (operand.kind == OperandOrigin::Kind::constant) continue;
    if (nest.main.access[k] == jit::Access::bitwise) continue;
    const int64_t aligned = jit::aligned_elements(element_of(operand, inputs, outputs));
    if (origin_of(operand, inputs, outputs).offset % aligned != 0) return true;
  }
  return false;
}

/// Calls the code with a copy of the argument block that has this call's pointers.
void call(const BoundNest& nest, const NestCode& code, const BoundCode& bound,
          std::span<const ConstView> inputs, std::span<const View> outputs) {
  int64_t arguments[jit::most_argument_words];
  std::copy(bound.arguments.begin(), bound.arguments.end(), arguments);
  for (size_t k = 0; k < nest.operands.size(); ++k) {
    const OperandOrigin& operand = nest.operands[k];
    const Origin origin = origin_of(operand, inputs, outputs);
    if (bound.access[k] == jit::Access::bitwise) {
      arguments[k] = origin.offset;
      arguments[nest.first_base + k] = origin.data;
    } else if (operand.kind == OperandOrigin::Kind::constant) {
      arguments[k] = origin.data;
    } else {
      arguments[k] = address(origin, element_of(operand, inputs, outputs));
    }
  }
  code.entry()(arguments);
}

/// The end of a sub-byte output that does not fill its last byte (of the split layouts, its last
/// group of three bytes). A dense view that begins at element 0 has the unused bits written as 0,
/// any other leaves them alone (DESIGN.md, Element types); code does the one where it takes the
/// output as contiguous, the other where it goes bit by bit.
class LastBytes {
 public:
  /// `bitwise`: whether the code goes bit by bit.
  LastBytes(const BoundTensor& tensor, const View& view, bool bitwise) {
    const bool clears = view.offset == 0 && is_dense(tensor);
    if (bitwise && !clears) return;
    const int64_t past = view.offset + tensor.last_index + 1;
    const int64_t rest = past % jit::aligned_elements(tensor.element);
    if (rest == 0) return;
    const int64_t first = past - rest;
    const int64_t begin = first * bits_of(tensor.element) / 8;
    at_ = static_cast<uint8_t*>(view.data) + begin;
    count_ = static_cast<size_t>(byte_size(tensor.element, past).value_or(0) - begin);
    for (int64_t index = first; index < past; ++index) {
      for (int bit = 0; bit < bits_of(tensor.element); ++bit) {
        const int64_t place = storage_bit(tensor.element, index, bit) - begin * 8;
        own_[static_cast<size_t>(place / 8)] |= static_cast<uint8_t>(1 << place % 8);
      }
    }
    if (!clears) std::copy_n(at_, count_, before_.begin());
  }

  /// After the code has run.
  void finish() const {
    for (size_t i = 0; i < count_; ++i) {
      at_[i] = static_cast<uint8_t>((at_[i] & own_[i]) | (before_[i] & ~own_[i]));
    }
  }

 private:
  uint8_t* at_ = nullptr;
  size_t count_ = 0;
  std::array<uint8_t, 3> own_ = {};     ///< bits of the output's elements
  std::array<uint8_t, 3> before_ = {};  ///< what the other bits are to be
};

/// Runs a nest with sub-byte operands.
void run_sub_byte_nest(const BoundState& bound, const BoundNest& nest, bool streaming,
                       std::span<const ConstView> inputs, std::span<const View> outputs) {
  const bool any_start =
      nest.any_start.code != nullptr && starts_inside_a_byte(nest, inputs, outputs);
  const BoundCode& code = any_start ? nest.any_start : nest.main;
  std::array<std::optional<LastBytes>, jit::most_outputs> ends;
  size_t count = 0;
  for (size_t k = 0; k < nest.operands.size(); ++k) {
    const OperandOrigin& operand = nest.operands[k];
    if (operand.kind != OperandOrigin::Kind::output) continue;
    const View& view = outputs[operand.index];
    if (!is_sub_byte(view.element)) continue;
    ends[count++].emplace(bound.outputs[operand.index], view,
                          code.access[k] == jit::Access::bitwise);
  }
  call(nest, streaming && !any_start ? *nest.streaming : *code.code, code, inputs, outputs);
  for (size_t i = 0; i < count; ++i) ends[i]->finish();
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
      if (nest.main.code == nullptr) continue;  // no elements
      const bool streaming =
          !in_place && streams(nest, outputs, options.stores, state_->kernel->compiled->target);
      if (nest.sub_byte) {
        run_sub_byte_nest(*state_, nest, streaming, inputs, outputs);
      } else {
        call(nest, streaming ? *nest.streaming : *nest.main.code, nest.main, inputs, outputs);
      }
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
