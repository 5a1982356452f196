// SPDX-License-Identifier: Apache-2.0
#include "tools/castor/check_case.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/interpreter/interpreter.hpp"
#include "ir/verify/infer.hpp"
#include "tools/castor/guarded_buffer.hpp"
#include "tools/testing/samples.hpp"

namespace castor::tools {

namespace {

/// One tensor of a run between canaries, after as many elements as its view skips.
struct TestTensor {
  ElementType type;
  Dims shape;
  Dims strides;
  size_t start;  ///< elements before the first
  GuardedBuffer buffer;
  std::vector<std::byte> wanted;  ///< what the buffer must hold in the end

  template <class Pointer>
  BasicView<Pointer> view() {
    const std::span<std::byte> bytes = buffer.data();
    return {bytes.data(), type, shape, strides, static_cast<int64_t>(start), bytes.size()};
  }
  size_t count() const { return static_cast<size_t>(*element_count(shape)); }
  /// Strides of axes with one element are never taken.
  bool is_dense() const {
    const Dims dense = dense_strides(shape);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] != 1 && strides[axis] != dense[axis]) return false;
    }
    return start == 0;
  }
  /// The index in the buffer of the n-th element in row-major order.
  size_t position_of(size_t element) const {
    int64_t position = static_cast<int64_t>(start);
    auto left = static_cast<int64_t>(element);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      position += left % shape[axis] * strides[axis];
      left /= shape[axis];
    }
    return static_cast<size_t>(position);
  }
};

/// The tensors of one run.
struct RunMemory {
  std::vector<TestTensor> inputs;
  std::vector<TestTensor> outputs;
  std::vector<ConstView> sources;
  std::vector<View> destinations;
};

/// A buffer that holds the tensor `dense` where the case wants it.
TestTensor make_tensor(const CheckCase& test, size_t tensor, ElementType type, const Dims& shape,
                       std::span<const std::byte> dense) {
  const size_t start = test.start_of(tensor, type);
  const Dims strides = strides_of(test.layout_of(tensor), shape);
  const size_t bytes = samples::storage_bytes(type, start + test.reach_of(tensor, shape));
  const size_t misaligned = test.misalignment * std::max<size_t>(bits_of(type) / 8, 1);
  TestTensor made{type, shape, strides, start, GuardedBuffer(bytes, misaligned), {}};
  const std::span<std::byte> data = made.buffer.data();
  if (made.is_dense()) {
    std::copy(dense.begin(), dense.end(), data.begin());
  } else {
    for (size_t i = 0; i < made.count(); ++i) {
      samples::store_pattern(data, type, made.position_of(i),
                             samples::load_pattern(dense, type, i));
    }
  }
  made.wanted.assign(data.begin(), data.end());
  return made;
}

/// Makes every element differ from what is wanted, and of a dense tensor the unused bits too, so
/// that a bit that is never written shows.
void invert(TestTensor& tensor) {
  const std::span<std::byte> data = tensor.buffer.data();
  if (tensor.is_dense()) {
    std::transform(data.begin(), data.end(), data.begin(), std::bit_not<>());
    return;
  }
  const uint64_t mask = ~uint64_t{0} >> (64 - bits_of(tensor.type));
  for (size_t i = 0; i < tensor.count(); ++i) {
    const size_t position = tensor.position_of(i);
    const uint64_t wanted = samples::load_pattern(tensor.wanted, tensor.type, position);
    samples::store_pattern(data, tensor.type, position, ~wanted & mask);
  }
}

RunMemory make_memory(const PreparedCase& prepared) {
  RunMemory memory;
  const size_t inputs = prepared.inputs.size();
  for (size_t i = 0; i < inputs; ++i) {
    memory.inputs.push_back(make_tensor(prepared.test, i, prepared.input_type(i),
                                        prepared.test.shapes[i], prepared.inputs[i]));
    memory.sources.push_back(memory.inputs.back().view<const void*>());
  }
  for (size_t i = 0; i < prepared.expected.size(); ++i) {
    memory.outputs.push_back(make_tensor(prepared.test, inputs + i, prepared.output_type(i),
                                         prepared.output_shapes[i], prepared.expected[i]));
    invert(memory.outputs.back());
    memory.destinations.push_back(memory.outputs.back().view<void*>());
  }
  return memory;
}

Status run_kernel(const Kernel& kernel, RunMemory& memory) {
  const Result<BoundKernel> bound = kernel.bind(memory.sources, memory.destinations);
  if (!bound) return bound.error();
  if (bound->engine() != Engine::jit) {
    return Error{ErrorCode::executable_memory,
                 fmt::format("bound to the interpreter: {}", bound->engine_reason())};
  }
  if (bound->tier() != kernel.tier()) {  // the case is not of the tier that it is to check
    return Error{ErrorCode::unsupported, std::string(bound->engine_reason())};
  }
  return bound->run(memory.sources, memory.destinations);
}

/// Flips a bit of the element in the middle of the first output that has one.
void flip_one_bit(RunMemory& memory) {
  for (TestTensor& output : memory.outputs) {
    if (output.count() == 0) continue;
    const std::span<std::byte> data = output.buffer.data();
    const size_t middle = output.position_of(output.count() / 2);
    const uint64_t pattern = samples::load_pattern(data, output.type, middle);
    samples::store_pattern(data, output.type, middle, pattern ^ 1);
    return;
  }
}

std::optional<Finding> compare_output(const TestTensor& output, size_t index) {
  const std::span<const std::byte> actual = output.buffer.data();
  if (std::equal(actual.begin(), actual.end(), output.wanted.begin())) return {};
  Finding finding{.kind = Finding::Kind::element, .tensor = index, .message = {}};
  for (size_t i = output.count(); i-- > 0;) {
    const uint64_t wanted =
        samples::load_pattern(output.wanted, output.type, output.position_of(i));
    const uint64_t got = samples::load_pattern(actual, output.type, output.position_of(i));
    if (wanted == got) continue;
    finding.element = static_cast<int64_t>(i);
    finding.expected = wanted;
    finding.actual = got;
    ++finding.differing;
  }
  if (finding.differing > 0) return finding;
  const auto at = std::mismatch(actual.begin(), actual.end(), output.wanted.begin()).first;
  finding.kind = Finding::Kind::unused_bits;
  finding.byte = at - actual.begin();
  finding.expected = std::to_integer<uint64_t>(output.wanted[static_cast<size_t>(finding.byte)]);
  finding.actual = std::to_integer<uint64_t>(*at);
  return finding;
}

std::optional<Finding> compare(const RunMemory& memory) {
  for (size_t i = 0; i < memory.outputs.size(); ++i) {
    if (auto finding = compare_output(memory.outputs[i], i)) return finding;
    if (const auto byte = memory.outputs[i].buffer.damage()) {
      return Finding{.kind = Finding::Kind::canary, .tensor = i, .byte = *byte, .message = {}};
    }
  }
  for (size_t i = 0; i < memory.inputs.size(); ++i) {
    const TestTensor& input = memory.inputs[i];
    const std::span<const std::byte> bytes = input.buffer.data();
    if (!std::equal(bytes.begin(), bytes.end(), input.wanted.begin()) || input.buffer.damage()) {
      return Finding{.kind = Finding::Kind::input, .tensor = i, .message = {}};
    }
  }
  return {};
}

}  // namespace

ElementType PreparedCase::input_type(size_t input) const {
  return function->type_of(function->parameters[input]).element;
}

ElementType PreparedCase::output_type(size_t output) const {
  return function->type_of(function->results[output]).element;
}

Result<PreparedCase> prepare_case(const Function& function, const InputSource& source,
                                  const CheckCase& test) {
  PreparedCase prepared{
      .function = &function, .test = test, .inputs = {}, .output_shapes = {}, .expected = {}};
  std::vector<ConstView> sources;
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    prepared.inputs.push_back(source.bytes(test, i));
    const std::vector<std::byte>& bytes = prepared.inputs.back();
    sources.emplace_back(bytes.data(), prepared.input_type(i), test.shapes[i], bytes.size());
  }
  const Result<BoundShapes> shapes = bind_shapes(function, test.shapes);
  if (!shapes) return shapes.error();
  std::vector<View> destinations;
  for (size_t i = 0; i < function.results.size(); ++i) {
    const Dims& shape = shapes->values[function.results[i]];
    const ElementType type = prepared.output_type(i);
    const auto bytes = static_cast<size_t>(*byte_size(type, *element_count(shape)));
    std::vector<std::byte>& memory = prepared.expected.emplace_back(bytes);
    prepared.output_shapes.push_back(shape);
    destinations.emplace_back(memory.data(), type, shape, bytes);
  }
  const Status interpreted = interpret(function, sources, destinations);
  if (!interpreted) return interpreted.error();
  return prepared;
}

std::optional<Finding> compare_case(const PreparedCase& prepared, const Kernel& kernel,
                                    bool corrupt) {
  RunMemory memory = make_memory(prepared);
  const Status ran = run_kernel(kernel, memory);
  if (!ran) {
    return Finding{.kind = Finding::Kind::failure, .message = ran.error().to_string()};
  }
  if (corrupt) flip_one_bit(memory);
  return compare(memory);
}

}  // namespace castor::tools
