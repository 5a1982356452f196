// SPDX-License-Identifier: Apache-2.0
// ONNX's own tests of Cast and CastLike: the interpreter and every tier give the bytes that ONNX
// expects.
//
// Two sets of data are used where they are there: the directory that CASTOR_ONNX_NODE_DATA names,
// else shared/data/onnx-node beside the source directory; and that of Debian's libonnx-testdata.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "ir/interpreter/interpreter.hpp"
#include "ir/numerics/unpacked.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/onnx_data.hpp"
#include "tests/support/onnx_node.hpp"

namespace castor {
namespace {

namespace fs = std::filesystem;
using test::OnnxDataSet;
using test::OnnxNodeTest;
using test::OnnxTensor;

constexpr size_t shared_cast_folders = 60;

/// From this version of ONNX's operator set on (ONNX 1.19), the data is computed with ml_dtypes.
/// Older data differs in three ways: floats round to nearest even and saturate in 4-bit integers;
/// NaN becomes 6 in f4e2m1; and bfloat16 is a float's upper half, which is no rounding of castor's.
constexpr int64_t ml_dtypes_opset = 24;

bool is_integer_of_up_to_4_bits(ElementType type) { return is_integer(type) && bits_of(type) <= 4; }

/// What Cast's attributes mean for a conversion to f8e8m0.
Result<ConvertOptions> e8m0_options(const OnnxNodeTest& test) {
  ConvertOptions options;
  if (test.integer("saturate", 1) == 0) options.overflow = Overflow::nan;
  const std::string mode = test.text("round_mode", "up");
  if (mode == "up") {
    options.rounding = Rounding::up;
  } else if (mode == "down") {
    options.rounding = Rounding::down;
  } else if (mode == "nearest") {
    options.rounding = Rounding::half_up;  // Cast-24: halves go up
  } else {
    return Error{ErrorCode::invalid_argument, "unknown round_mode " + mode};
  }
  return options;
}

/// castor's options for what ONNX's Cast does between two different types.
Result<ConvertOptions> cast_options(const OnnxNodeTest& test, ElementType from, ElementType to) {
  const bool is_old = test.opset < ml_dtypes_opset;
  ConvertOptions options;
  if (to == ElementType::f8e8m0) return e8m0_options(test);
  if (is_float(to) && bits_of(to) == 8) {
    if (test.integer("saturate", 1) != 0) options.overflow = Overflow::saturate;
  } else if (to == ElementType::f4e2m1) {
    if (!is_old) options.nan = NanMode::zero;
  } else if (is_integer_of_up_to_4_bits(to) && is_float(from)) {
    options.overflow = is_old ? Overflow::saturate : Overflow::wrap;
    if (is_old) options.rounding = Rounding::nearest_even;
  }
  return options;
}

bool is_nan(uint64_t pattern, ElementType type) {
  return numerics::decode(pattern, type).kind == numerics::NumberClass::nan;
}

/// `expected`, with each NaN replaced by what was computed instead if that is a NaN too: payloads
/// and signs of NaNs differ among libraries.
std::vector<std::byte> with_nans_of(std::span<const std::byte> actual, const OnnxTensor& expected) {
  std::vector<std::byte> bytes = expected.bytes;
  const ElementType type = *expected.element;
  const auto count = static_cast<size_t>(*element_count(expected.shape));
  for (size_t i = 0; i < count; ++i) {
    const uint64_t found = samples::load_pattern(actual, type, i);
    if (is_nan(samples::load_pattern(bytes, type, i), type) && is_nan(found, type)) {
      samples::store_pattern(bytes, type, i, found);
    }
  }
  return bytes;
}

/// One conversion that ONNX gives the result of.
struct Case {
  const OnnxTensor& input;
  const OnnxTensor& expected;
  ConvertOptions options;

  ConstView source() const {
    return {input.bytes.data(), *input.element, input.shape, input.bytes.size()};
  }
};

/// What `compute` writes into a tensor of ones must be what is expected.
template <class Compute>
bool gives_the_bytes(const Case& one, std::string_view engine, Compute compute) {
  const OnnxTensor& expected = one.expected;
  std::vector<std::byte> actual(expected.bytes.size(), std::byte{0xff});
  const View destination(actual.data(), *expected.element, expected.shape, actual.size());
  const Status status = compute(destination);
  EXPECT_TRUE(status.ok()) << engine << ": " << status.error().to_string();
  if (!status) return false;
  const std::vector<std::byte> wanted = with_nans_of(actual, expected);
  const auto at = std::ranges::mismatch(actual, wanted);
  if (at.in1 == actual.end()) return true;
  ADD_FAILURE() << fmt::format("{}, {} -> {} {{{}}}: byte {} is 0x{:02x}, expected 0x{:02x}",
                               engine, name_of(*one.input.element), name_of(*expected.element),
                               to_string(one.options), at.in1 - actual.begin(),
                               std::to_integer<int>(*at.in1), std::to_integer<int>(*at.in2));
  return false;
}

Status interpret_case(const Case& one, const View& destination) {
  FunctionBuilder builder("cast");
  const ValueId x = builder.parameter("x", {*one.input.element, to_shape(one.input.shape)});
  builder.result(builder.convert(x, *one.expected.element, one.options));
  const auto function = builder.finish();
  if (!function) return function.error();
  const ConstView source = one.source();
  return interpret(**function, {&source, 1}, {&destination, 1});
}

bool passes_everywhere(const Case& one) {
  bool passes = gives_the_bytes(one, "interpreter", [&](const View& destination) {
    return interpret_case(one, destination);
  });
  for (const auto& [tier, runtime] : test::elementwise_tier_runtimes()) {
    passes &= gives_the_bytes(one, name_of(tier), [&, &on_tier = runtime](const View& destination) {
      return on_tier.convert(one.source(), destination, one.options);
    });
  }
  return passes;
}

bool passes(const OnnxNodeTest& test, const OnnxDataSet& data) {
  const OnnxTensor& input = *data.inputs[0];
  const OnnxTensor& expected = data.outputs[0];
  EXPECT_EQ(input.shape, expected.shape);
  if (input.shape != expected.shape) return false;
  const auto options = cast_options(test, *input.element, *expected.element);
  EXPECT_TRUE(options) << options.error().message;
  return options && passes_everywhere({input, expected, *options});
}

/// Whether the node is a Cast or a CastLike between tensors of the types that it names.
bool is_cast(const OnnxNodeTest& test, const OnnxDataSet& data) {
  if (data.outputs.size() != 1) return false;
  if (!std::ranges::all_of(data.inputs, [](const auto& input) { return input.has_value(); })) {
    return false;
  }
  const int32_t to = data.outputs[0].data_type;
  if (test.op_type == "Cast") return data.inputs.size() == 1 && test.integer("to", 0) == to;
  return test.op_type == "CastLike" && data.inputs.size() == 2 && data.inputs[1]->data_type == to;
}

/// How the folders of one kind fared.
struct Tally {
  std::string prefix;
  size_t folders = 0;
  size_t passed = 0;
  size_t failed = 0;
  size_t strings = 0;
  size_t cut_bfloat16 = 0;
  size_t function_bodies = 0;

  std::string text() const {
    return fmt::format(
        "{} of {} {}* pass ({} fail; skipped: {} with strings, {} with bfloat16 cut and not "
        "rounded, {} expanded to several nodes)",
        passed, folders, prefix, failed, strings, cut_bfloat16, function_bodies);
  }
};

enum class Outcome { passed, failed, strings, cut_bfloat16 };

Outcome outcome_of(const OnnxNodeTest& test, const OnnxDataSet& data) {
  EXPECT_TRUE(is_cast(test, data)) << test.op_type;
  if (!is_cast(test, data)) return Outcome::failed;
  const OnnxTensor& from = *data.inputs[0];
  const OnnxTensor& to = data.outputs[0];
  if (from.data_type == test::onnx_string || to.data_type == test::onnx_string) {
    return Outcome::strings;
  }
  EXPECT_TRUE(from.element && to.element) << from.data_type << " -> " << to.data_type;
  if (!from.element || !to.element) return Outcome::failed;
  if (to.element == ElementType::bf16 && test.opset < ml_dtypes_opset) {
    return Outcome::cut_bfloat16;
  }
  return passes(test, data) ? Outcome::passed : Outcome::failed;
}

/// Counts a folder by the first of its data sets that does not pass, if there is one.
void run(const OnnxNodeTest& test, Tally& tally) {
  Outcome outcome = Outcome::passed;
  for (const OnnxDataSet& data : test.data_sets) {
    outcome = outcome_of(test, data);
    if (outcome != Outcome::passed) break;
  }
  switch (outcome) {
    case Outcome::passed: ++tally.passed; break;
    case Outcome::failed: ++tally.failed; break;
    case Outcome::strings: ++tally.strings; break;
    case Outcome::cut_bfloat16: ++tally.cut_bfloat16; break;
  }
}

Tally run_folders(const fs::path& data, const std::string& prefix) {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(data)) {
    if (entry.path().filename().string().starts_with(prefix)) folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  Tally tally{.prefix = prefix, .folders = folders.size()};
  for (const fs::path& folder : folders) {
    SCOPED_TRACE(folder.filename().string());
    const auto test = test::read_onnx_node_test(folder);
    if (test) {
      run(*test, tally);
    } else if (test.error().code == ErrorCode::unsupported) {
      ++tally.function_bodies;
    } else {
      ADD_FAILURE() << test.error().message;
      ++tally.failed;
    }
  }
  fmt::print("{}\n", tally.text());
  return tally;
}

void expect_all_pass(const Tally& tally) {
  EXPECT_GT(tally.passed, 0u);
  EXPECT_EQ(tally.passed + tally.strings + tally.cut_bfloat16 + tally.function_bodies,
            tally.folders)
      << tally.text();
}

TEST(OnnxCast, NamedOrSharedData) {
  const auto data = test::named_or_shared_onnx_data();
  if (!data) GTEST_SKIP() << test::no_shared_onnx_data;
  const Tally cast = run_folders(data->folder, "test_cast_");
  expect_all_pass(cast);
  if (!data->named) {
    EXPECT_EQ(cast.passed, shared_cast_folders);
  }
  expect_all_pass(run_folders(data->folder, "test_castlike_"));
}

TEST(OnnxCast, DataOfDebian) {
  if (!fs::is_directory(test::debian_onnx_data)) GTEST_SKIP() << test::no_debian_onnx_data;
  expect_all_pass(run_folders(test::debian_onnx_data, "test_cast_"));
  expect_all_pass(run_folders(test::debian_onnx_data, "test_castlike_"));
}

}  // namespace
}  // namespace castor
