// SPDX-License-Identifier: Apache-2.0
#include "tools/castor/check_case.hpp"

#include <algorithm>

#include "ir/infer.hpp"
#include "ir/interpreter.hpp"
#include "tests/support/samples.hpp"
#include "tools/castor/guarded_buffer.hpp"

namespace castor::tools {

namespace {

/// The tensors of one run, each between canaries.
struct RunMemory {
  std::vector<GuardedBuffer> inputs;
  std::vector<GuardedBuffer> outputs;
  std::vector<ConstView> sources;
  std::vector<View> destinations;
};

size_t misaligned(const CheckCase& test, ElementType type) {
  return test.misalignment * std::max<size_t>(samples::storage_bytes(type, 1), 1);
}

/// Copies the inputs; outputs hold the opposite of what is expected, so that a byte that is never
/// written shows.
RunMemory make_memory(const PreparedCase& prepared) {
  RunMemory memory;
  for (size_t i = 0; i < prepared.inputs.size(); ++i) {
    const ElementType type = prepared.input_type(i);
    const std::vector<std::byte>& bytes = prepared.inputs[i];
    GuardedBuffer& buffer =
        memory.inputs.emplace_back(bytes.size(), misaligned(prepared.test, type));
    std::copy(bytes.begin(), bytes.end(), buffer.data().begin());
    memory.sources.emplace_back(buffer.data().data(), type, prepared.test.shapes[i], bytes.size());
  }
  for (size_t i = 0; i < prepared.expected.size(); ++i) {
    const ElementType type = prepared.output_type(i);
    const std::vector<std::byte>& bytes = prepared.expected[i];
    GuardedBuffer& buffer =
        memory.outputs.emplace_back(bytes.size(), misaligned(prepared.test, type));
    std::transform(bytes.begin(), bytes.end(), buffer.data().begin(), std::bit_not<>());
    memory.destinations.emplace_back(buffer.data().data(), type, prepared.output_shapes[i],
                                     bytes.size());
  }
  return memory;
}

Status run_kernel(const Kernel& kernel, RunMemory& memory) {
  const Result<BoundKernel> bound = kernel.bind(memory.sources, memory.destinations);
  if (!bound) return bound.error();
  return bound->run(memory.sources, memory.destinations);
}

void flip_one_bit(RunMemory& memory) {
  for (GuardedBuffer& output : memory.outputs) {
    const std::span<std::byte> bytes = output.data();
    if (bytes.empty()) continue;
    bytes[bytes.size() / 2] ^= std::byte{1};
    return;
  }
}

std::optional<Finding> compare_output(const PreparedCase& prepared, size_t output,
                                      std::span<const std::byte> actual) {
  const std::vector<std::byte>& expected = prepared.expected[output];
  if (std::equal(actual.begin(), actual.end(), expected.begin())) return {};
  const ElementType type = prepared.output_type(output);
  const auto count = static_cast<size_t>(*element_count(prepared.output_shapes[output]));
  Finding finding{.kind = Finding::Kind::element, .tensor = output, .message = {}};
  for (size_t i = count; i-- > 0;) {
    const uint64_t wanted = samples::load_pattern(expected, type, i);
    const uint64_t got = samples::load_pattern(actual, type, i);
    if (wanted == got) continue;
    finding.element = static_cast<int64_t>(i);
    finding.expected = wanted;
    finding.actual = got;
    ++finding.differing;
  }
  return finding;
}

std::optional<Finding> compare(const PreparedCase& prepared, const RunMemory& memory) {
  for (size_t i = 0; i < memory.outputs.size(); ++i) {
    const GuardedBuffer& output = memory.outputs[i];
    if (auto finding = compare_output(prepared, i, output.data())) return finding;
    if (const auto byte = output.damage()) {
      return Finding{.kind = Finding::Kind::canary, .tensor = i, .byte = *byte, .message = {}};
    }
  }
  for (size_t i = 0; i < memory.inputs.size(); ++i) {
    const std::span<const std::byte> bytes = memory.inputs[i].data();
    const bool same = std::equal(bytes.begin(), bytes.end(), prepared.inputs[i].begin());
    if (!same || memory.inputs[i].damage()) {
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
  return compare(prepared, memory);
}

}  // namespace castor::tools
