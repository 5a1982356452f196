// SPDX-License-Identifier: Apache-2.0
// Runs functions for an oracle outside castor: reads a file of cases, computes each in
// the interpreter and on every tier, there also with the inputs' axes stored in reverse order, and
// writes what came out.
//
// A file is a sequence of records, each a line of words and then as many bytes as the line says:
//   case INPUTS TEXT_BYTES             the function's text follows
//   tensor TYPE BYTES RANK EXTENT...   its bytes follow, dense; INPUTS of them for each case
// For each case the results are, in the same form,
//   ok OUTPUTS, and OUTPUTS tensors    the interpreter and all tiers agree to the last bit
//   refused BYTES                      the message follows: of the parser, or of binding
//   broken BYTES                       what should not be: tiers that differ, a run that fails
//
// usage: castor_oracle CASES RESULTS
#include <fmt/format.h>
#include <castor/castor.hpp>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "ir/interpreter/interpreter.hpp"
#include "ir/verify/infer.hpp"
#include "tests/support/conversions.hpp"

namespace castor {
namespace {

struct Tensor {
  ElementType type = ElementType::f32;
  Dims shape;
  std::vector<std::byte> bytes;
};

struct Case {
  std::string text;
  std::vector<Tensor> inputs;
};

// ---- Records.

std::string read_bytes(std::istream& in, size_t count) {
  std::string bytes(count, '\0');
  in.get();  // the line's end
  in.read(bytes.data(), static_cast<std::streamsize>(count));
  return bytes;
}

bool read_tensor(std::istream& in, Tensor& tensor) {
  std::string word, type;
  size_t bytes = 0;
  int rank = 0;
  if (!(in >> word >> type >> bytes >> rank) || word != "tensor") return false;
  const auto element = element_type_named(type);
  if (!element) return false;
  tensor.type = *element;
  for (int i = 0; i < rank; ++i) {
    int64_t extent = 0;
    in >> extent;
    tensor.shape.push_back(extent);
  }
  const std::string data = read_bytes(in, bytes);
  const auto* first = reinterpret_cast<const std::byte*>(data.data());
  tensor.bytes.assign(first, first + data.size());
  return in.good();
}

/// The next case; nothing at the end of the file or where it is not what it should be.
std::optional<Case> read_case(std::istream& in) {
  std::string word;
  size_t inputs = 0;
  size_t bytes = 0;
  if (!(in >> word >> inputs >> bytes) || word != "case") return std::nullopt;
  Case one{read_bytes(in, bytes), std::vector<Tensor>(inputs)};
  for (Tensor& tensor : one.inputs) {
    if (!read_tensor(in, tensor)) return std::nullopt;
  }
  return one;
}

void write_message(std::ostream& out, std::string_view word, const std::string& message) {
  out << word << " " << message.size() << "\n" << message;
}

void write_tensor(std::ostream& out, const Tensor& tensor) {
  out << "tensor " << name_of(tensor.type) << " " << tensor.bytes.size() << " "
      << tensor.shape.rank();
  for (int64_t extent : tensor.shape) out << " " << extent;
  out << "\n";
  out.write(reinterpret_cast<const char*>(tensor.bytes.data()),
            static_cast<std::streamsize>(tensor.bytes.size()));
}

// ---- Computing.

std::vector<Tensor> empty_results(const Function& function, const BoundShapes& shapes) {
  std::vector<Tensor> results;
  for (ValueId id : function.results) {
    const ElementType type = function.type_of(id).element;
    const Dims& shape = shapes.values[id];
    const auto bytes = byte_size(type, element_count(shape).value_or(0)).value_or(0);
    results.push_back({type, shape, std::vector<std::byte>(static_cast<size_t>(bytes))});
  }
  return results;
}

std::vector<ConstView> views_of(const std::vector<Tensor>& tensors) {
  std::vector<ConstView> views;
  for (const Tensor& tensor : tensors) {
    views.emplace_back(tensor.bytes.data(), tensor.type, tensor.shape, tensor.bytes.size());
  }
  return views;
}

/// Strides of a dense tensor whose first axis varies fastest.
Dims reversed_strides(const Dims& shape) {
  Dims strides = Dims::filled(shape.rank(), 1);
  for (int axis = 1; axis < shape.rank(); ++axis) {
    strides[axis] = strides[axis - 1] * std::max<int64_t>(shape[axis - 1], 1);
  }
  return strides;
}

/// The same tensor (of elements of whole bytes) with its axes stored in reverse order.
std::vector<std::byte> stored_in_reverse(const Tensor& tensor) {
  const Dims strides = reversed_strides(tensor.shape);
  const auto size = static_cast<int64_t>(bits_of(tensor.type)) / 8;
  std::vector<std::byte> bytes(tensor.bytes.size());
  Dims at = Dims::filled(tensor.shape.rank(), 0);
  for (auto from = tensor.bytes.begin(); from != tensor.bytes.end(); from += size) {
    int64_t to = 0;
    for (int axis = 0; axis < at.rank(); ++axis) to += at[axis] * strides[axis];
    std::copy_n(from, size, bytes.begin() + to * size);
    for (int axis = at.rank() - 1; axis >= 0 && ++at[axis] == tensor.shape[axis]; --axis) {
      at[axis] = 0;
    }
  }
  return bytes;
}

std::vector<View> views_of(std::vector<Tensor>& tensors) {
  std::vector<View> views;
  for (Tensor& tensor : tensors) {
    std::ranges::fill(tensor.bytes, std::byte{0xa5});
    views.emplace_back(tensor.bytes.data(), tensor.type, tensor.shape, tensor.bytes.size());
  }
  return views;
}

Status run_compiled(const Runtime& runtime, const FunctionPtr& function,
                    std::span<const ConstView> inputs, std::span<const View> outputs) {
  const Result<Kernel> kernel = runtime.compile(function);
  if (!kernel) return kernel.error();
  if (kernel->engine() != Engine::jit) {
    return Error{ErrorCode::unsupported, std::string(kernel->engine_reason())};
  }
  const Result<BoundKernel> bound = kernel->bind(inputs, outputs);
  if (!bound) return bound.error();
  return bound->run(inputs, outputs);
}

/// What is wrong on some tier; empty if nothing.
std::string disagreement(const FunctionPtr& function, std::span<const ConstView> inputs,
                         const std::vector<Tensor>& expected) {
  std::vector<Tensor> actual = expected;
  const std::vector<View> outputs = views_of(actual);
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    for (Tensor& tensor : actual) std::ranges::fill(tensor.bytes, std::byte{0xa5});
    const Status status = run_compiled(runtime, function, inputs, outputs);
    if (!status) return fmt::format("{}: {}", name_of(tier), status.error().to_string());
    for (size_t i = 0; i < actual.size(); ++i) {
      const auto at = std::ranges::mismatch(actual[i].bytes, expected[i].bytes);
      if (at.in1 == actual[i].bytes.end()) continue;
      return fmt::format("{}: result {}, byte {} is not the interpreter's", name_of(tier), i,
                         at.in1 - actual[i].bytes.begin());
    }
  }
  return {};
}

/// What disagrees with the inputs' axes stored in reverse order.
std::string disagreement_in_reverse(const FunctionPtr& function, const Case& one,
                                    const std::vector<Tensor>& expected) {
  std::vector<std::vector<std::byte>> storage;
  std::vector<ConstView> inputs;
  for (const Tensor& input : one.inputs) {
    storage.push_back(stored_in_reverse(input));
    inputs.emplace_back(storage.back().data(), input.type, input.shape,
                        reversed_strides(input.shape), 0, storage.back().size());
  }
  const std::string mistake = disagreement(function, inputs, expected);
  return mistake.empty() ? mistake : "inputs stored in reverse: " + mistake;
}

void answer(const Case& one, std::ostream& out) {
  const Result<FunctionPtr> function = parse_function(one.text);
  if (!function) return write_message(out, "refused", function.error().to_string());
  std::vector<Dims> shapes;
  for (const Tensor& input : one.inputs) shapes.push_back(input.shape);
  const Result<BoundShapes> bound = bind_shapes(**function, shapes);
  if (!bound) return write_message(out, "refused", bound.error().to_string());
  std::vector<Tensor> results = empty_results(**function, *bound);
  const std::vector<ConstView> inputs = views_of(one.inputs);
  const Status status = interpret(**function, inputs, views_of(results));
  if (!status) return write_message(out, "broken", status.error().to_string());
  std::string mistake = disagreement(*function, inputs, results);
  if (mistake.empty()) mistake = disagreement_in_reverse(*function, one, results);
  if (!mistake.empty()) return write_message(out, "broken", mistake);
  out << "ok " << results.size() << "\n";
  for (const Tensor& result : results) write_tensor(out, result);
}

int run(const char* cases, const char* results) {
  std::ifstream in(cases, std::ios::binary);
  std::ofstream out(results, std::ios::binary);
  size_t count = 0;
  while (const std::optional<Case> one = read_case(in)) {
    answer(*one, out);
    ++count;
  }
  out.flush();
  if (!in.eof() || !out) {
    std::cerr << "castor_oracle: cannot read all cases, or cannot write (case " << count << ")\n";
    return 1;
  }
  std::cout << count << " cases on " << test::tier_runtimes().size() << " tiers\n";
  return 0;
}

}  // namespace
}  // namespace castor

int main(int argc, char** argv) {
  if (argc == 3) return castor::run(argv[1], argv[2]);
  std::cerr << "usage: castor_oracle CASES RESULTS\n";
  return 2;
}
