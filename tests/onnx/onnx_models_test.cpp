// SPDX-License-Identifier: Apache-2.0
// ONNX's own tests through the front end: each model whose nodes are all taken is one function,
// which the interpreter and every tier compute to the bits that ONNX expects (NaNs compare as a
// class).
//
// tests/data/onnx_models.txt lists every folder, with the function's ops or what castor lacks for
// it; the data is found as onnx_cast_test finds it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "ir/interpreter/interpreter.hpp"
#include "ir/numerics/scalar.hpp"
#include "ir/numerics/unpacked.hpp"
#include "ir/text/text.hpp"
#include "ir/verify/infer.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/onnx_data.hpp"
#include "tests/support/onnx_models.hpp"

namespace castor {
namespace {

namespace fs = std::filesystem;
using onnx::Tensor;
using test::OnnxForm;
using test::OnnxFunction;
using test::OnnxListRow;
using test::OnnxModelData;
using test::OnnxModelTest;

constexpr size_t min_of_shared_data = 471;
constexpr size_t min_of_debian_data = 285;

constexpr OnnxForm forms[] = {
    {},
    {.unknown_extents = true, .known_scalars = true},
};

fs::path list_file() { return fs::path(CASTOR_TEST_DATA) / "onnx_models.txt"; }

bool is_nan(uint64_t pattern, ElementType type) {
  return numerics::decode(pattern, type).kind == numerics::NumberClass::nan;
}

/// Whether two floats are as close as sums in different orders.
bool are_close(uint64_t a, uint64_t b, ElementType type) {
  const auto number = [&](uint64_t pattern) {
    return std::bit_cast<double>(numerics::convert(pattern, type, ElementType::f64, {}));
  };
  return is_float(type) && std::abs(number(a) - number(b)) <= 0x1p-20 * std::abs(number(a));
}

/// Where the bytes differ in more than the payloads and signs of NaNs; empty where nowhere. ONNX
/// does not say in which order floats are summed.
std::string difference(const Tensor& expected, std::span<const std::byte> actual, bool has_sums) {
  const ElementType type = expected.element;
  const auto count = static_cast<size_t>(*element_count(expected.shape));
  for (size_t i = 0; i < count; ++i) {
    const uint64_t wanted = samples::load_pattern(expected.data->bytes, type, i);
    const uint64_t found = samples::load_pattern(actual, type, i);
    if (wanted == found || (is_nan(wanted, type) && is_nan(found, type))) continue;
    if (has_sums && are_close(wanted, found, type)) continue;
    return fmt::format("element {} of {}: 0x{:x}, expected 0x{:x}", i, count, found, wanted);
  }
  return {};
}

/// The tensors of one call.
struct Call {
  std::vector<ConstView> inputs;
  std::vector<std::vector<std::byte>> results;
  std::vector<View> outputs;
};

Call call_of(const OnnxFunction& made, const OnnxModelData& data) {
  Call call;
  for (const size_t input : made.inputs) {
    const Tensor& tensor = data.inputs[input];
    call.inputs.emplace_back(tensor.data->bytes.data(), tensor.element, tensor.shape,
                             tensor.data->bytes.size());
  }
  for (const Tensor& expected : data.outputs) {
    call.results.emplace_back(expected.data->bytes.size(), std::byte{0xa5});
  }
  for (size_t i = 0; i < data.outputs.size(); ++i) {
    const Tensor& expected = data.outputs[i];
    call.outputs.emplace_back(call.results[i].data(), expected.element, expected.shape,
                              call.results[i].size());
  }
  return call;
}

/// What is wrong with what `compute` gives; empty if nothing.
template <class Compute>
std::string mistake_of(const OnnxFunction& made, const OnnxModelData& data, Compute compute) {
  const Call call = call_of(made, data);
  const Status status = compute(call);
  if (!status) return status.error().to_string();
  const bool has_sums = std::ranges::find(made.function->operations, OpKind::reduce_sum,
                                          &Operation::op) != made.function->operations.end();
  for (size_t i = 0; i < data.outputs.size(); ++i) {
    std::string found = difference(data.outputs[i], call.results[i], has_sums);
    if (!found.empty()) return found;
  }
  return {};
}

Status run_compiled(const Runtime& runtime, const FunctionPtr& function, const Call& call) {
  const Result<Kernel> kernel = runtime.compile(function);
  if (!kernel) return kernel.error();
  if (kernel->engine() != Engine::jit) {
    return Error{ErrorCode::unsupported, std::string(kernel->engine_reason())};
  }
  const Result<BoundKernel> bound = kernel->bind(call.inputs, call.outputs);
  if (!bound) return bound.error();
  return bound->run(call.inputs, call.outputs);
}

/// What is wrong in the interpreter or on a tier, first of all with the results' shapes.
std::string mistake_anywhere(const OnnxFunction& made, const OnnxModelData& data) {
  std::vector<Dims> shapes;
  for (const size_t input : made.inputs) shapes.push_back(data.inputs[input].shape);
  const Result<BoundShapes> bound = bind_shapes(*made.function, shapes);
  if (!bound) return bound.error().to_string();
  for (size_t i = 0; i < data.outputs.size(); ++i) {
    const Dims& shape = bound->values[made.function->results[i]];
    if (shape != data.outputs[i].shape) {
      return fmt::format("the result's shape is {}, expected {}", to_string(shape),
                         to_string(data.outputs[i].shape));
    }
  }
  std::string mistake = mistake_of(made, data, [&](const Call& call) {
    return interpret(*made.function, call.inputs, call.outputs);
  });
  if (!mistake.empty()) return "interpreter: " + mistake;
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    mistake = mistake_of(made, data, [&, &at = runtime](const Call& call) {
      return run_compiled(at, made.function, call);
    });
    if (!mistake.empty()) return fmt::format("{}: {}", name_of(tier), mistake);
  }
  return {};
}

/// What becomes of one form of a test; `left_out` for a graph that castor does not express.
struct Outcome {
  bool left_out = false;
  std::string text;  ///< the function's ops, or the reason
};

Outcome run_form(const OnnxModelTest& test, const OnnxForm& form) {
  Outcome outcome;
  for (const OnnxModelData& data : test.data_sets) {
    const auto made = test::onnx_function(test, data, form);
    if (!made) {
      EXPECT_EQ(made.error().code, ErrorCode::unsupported) << made.error().to_string();
      return {true, made.error().message};
    }
    outcome = {false, test::ops_of(*made->function)};
    const std::string mistake = mistake_anywhere(*made, data);
    EXPECT_TRUE(mistake.empty()) << mistake << "\n" << print(*made->function);
  }
  return outcome;
}

/// From this version on the data of casts is computed with ml_dtypes; onnx_cast_test has the older.
constexpr int64_t ml_dtypes_opset = 24;

bool has_old_casts(const OnnxModelTest& test) {
  return test.name.starts_with("test_cast") && test.graph.nodes[0].version < ml_dtypes_opset;
}

/// The line that the list should have for the test: of the form with extents that are known.
OnnxListRow row_of(const OnnxModelTest& test) {
  if (has_old_casts(test)) return {test.name, false, "casts of before ml_dtypes: onnx_cast_test"};
  Outcome outcome = run_form(test, forms[0]);
  // A form may say less than its nodes need, or more; what runs must be right.
  for (const OnnxForm& form : std::span(forms).subspan(1)) run_form(test, form);
  return {test.name, !outcome.left_out, outcome.text};
}

/// A line for each folder of this data set.
std::vector<OnnxListRow> rows_of(const fs::path& data) {
  std::vector<OnnxListRow> rows;
  for (const auto& entry : fs::directory_iterator(data)) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const auto test = test::read_onnx_model_test(entry.path());
    if (test) {
      rows.push_back(row_of(*test));
    } else {
      EXPECT_EQ(test.error().code, ErrorCode::unsupported) << test.error().message;
      rows.push_back({name, false, test.error().message});
    }
  }
  return rows;
}

void check(const fs::path& data, size_t min) {
  std::vector<OnnxListRow> listed = test::read_onnx_list(list_file());
  size_t ran = 0;
  size_t left_out = 0;
  for (const OnnxListRow& row : rows_of(data)) {
    ++(row.runs ? ran : left_out);
    if (std::ranges::find(listed, row) != listed.end()) continue;
    if (test::rewrites_golden()) {
      listed.push_back(row);
    } else {
      ADD_FAILURE() << "not in " << list_file() << ": " << to_string(row);
    }
  }
  fmt::print("{} folders run, {} left out\n", ran, left_out);
  EXPECT_GE(ran, min);
  if (test::rewrites_golden()) test::write_onnx_list(list_file(), listed);
}

TEST(OnnxModels, NamedOrSharedData) {
  const auto data = test::named_or_shared_onnx_data();
  if (!data) GTEST_SKIP() << test::no_shared_onnx_data;
  check(data->folder, data->named ? 1 : min_of_shared_data);
}

TEST(OnnxModels, DataOfDebian) {
  if (!fs::is_directory(test::debian_onnx_data)) GTEST_SKIP() << test::no_debian_onnx_data;
  check(test::debian_onnx_data, min_of_debian_data);
}

}  // namespace
}  // namespace castor
