// SPDX-License-Identifier: Apache-2.0
// Counts that a C caller gives are compared with what the function has before an entry is read:
// here the arrays end where an inaccessible page begins.
#include <gtest/gtest.h>

#include <castor/castor.h>

#include <cstring>
#include <string>

#include "tools/testing/guarded_pages.hpp"

namespace castor::test {
namespace {

constexpr const char* text =
    "func @f(%x: f32[2], %y: f32[2]) -> (f32[2]) {\n  %z = add %x, %y\n  return %z\n}\n";

/// Copies of `value` up to an inaccessible page.
template <class T>
class AtEnd {
 public:
  AtEnd(const T& value, size_t count)
      : first_(reinterpret_cast<T*>(pages_.at_end(count * sizeof(T)))) {
    for (size_t i = 0; i < count; ++i) std::memcpy(first_ + i, &value, sizeof value);
  }
  const T* get() const { return first_; }

 private:
  GuardedPages pages_{4096};
  T* first_;
};

void expect_refused(castor_status status, castor_status expected, const castor_error& error,
                    const std::string& message) {
  EXPECT_EQ(status, expected) << error.message;
  EXPECT_NE(std::string(error.message).find(message), std::string::npos)
      << "found: " << error.message << "\nexpected: " << message;
}

TEST(CCounts, OfShapesStridesAndViews) {
  castor_runtime* runtime = nullptr;
  castor_kernel* kernel = nullptr;
  castor_bound_kernel* bound = nullptr;
  castor_error error;
  ASSERT_EQ(castor_runtime_create(nullptr, &runtime, &error), CASTOR_OK);
  ASSERT_EQ(castor_runtime_compile_text(runtime, text, std::strlen(text), nullptr, &kernel, &error),
            CASTOR_OK);
  const int64_t extent[] = {2};
  const AtEnd<castor_extents> two({extent, 1}, 2);
  const AtEnd<castor_extents> one({extent, 1}, 1);
  ASSERT_EQ(castor_kernel_bind(kernel, two.get(), 2, nullptr, 0, nullptr, &bound, &error),
            CASTOR_OK);
  float data[2] = {1, 2};
  float result[2] = {99, 99};
  const castor_view input = {data, CASTOR_F32, 1, extent, nullptr, 0, sizeof data};
  const castor_view output = {result, CASTOR_F32, 1, extent, nullptr, 0, sizeof result};
  const AtEnd<castor_view> inputs(input, 2);
  const AtEnd<castor_view> outputs(output, 1);
  for (const size_t many : {size_t{3}, size_t{17}, size_t{1} << 20, SIZE_MAX}) {
    SCOPED_TRACE(many);
    const std::string found = std::to_string(many) + " ";
    castor_bound_kernel* other = nullptr;
    expect_refused(castor_kernel_bind(kernel, one.get(), many, nullptr, 0, nullptr, &other, &error),
                   CASTOR_INVALID_ARGUMENT, error,
                   found + "input shapes given; the function has 2");
    if (many != 3) {
      expect_refused(
          castor_kernel_bind(kernel, two.get(), 2, one.get(), many, nullptr, &other, &error),
          CASTOR_INVALID_ARGUMENT, error,
          found + "strides (inputs and outputs) given; the function has 3");
    }
    expect_refused(castor_kernel_bind_views(kernel, inputs.get(), many, outputs.get(), 1, nullptr,
                                            &other, &error),
                   CASTOR_INVALID_ARGUMENT, error, found + "inputs given; the function has 2");
    expect_refused(castor_kernel_bind_views(kernel, inputs.get(), 2, outputs.get(), many, nullptr,
                                            &other, &error),
                   CASTOR_INVALID_ARGUMENT, error, found + "outputs given; the function has 1");
    expect_refused(
        castor_bound_kernel_run(bound, inputs.get(), many, outputs.get(), 1, nullptr, &error),
        CASTOR_INVALID_ARGUMENT, error, found + "inputs given; the function has 2");
    expect_refused(
        castor_bound_kernel_run(bound, inputs.get(), 2, outputs.get(), many, nullptr, &error),
        CASTOR_INVALID_ARGUMENT, error, found + "outputs given; the function has 1");
    EXPECT_EQ(other, nullptr);
  }
  EXPECT_EQ(result[0], 99);
  ASSERT_EQ(castor_bound_kernel_run(bound, inputs.get(), 2, outputs.get(), 1, nullptr, &error),
            CASTOR_OK);
  EXPECT_EQ(result[1], 4);
  castor_bound_kernel_destroy(bound);
  castor_kernel_destroy(kernel);
  castor_runtime_destroy(runtime);
}

/// The first mistake of a builder that is given one operation.
void expect_operation_refused(const castor_operation& operation, castor_status expected,
                              const std::string& message) {
  castor_error error;
  castor_builder* builder = nullptr;
  castor_function* function = nullptr;
  ASSERT_EQ(castor_builder_create("f", &builder, &error), CASTOR_OK);
  const int64_t extent = 2;
  const castor_dim dim = {extent, nullptr};
  castor_tensor_type type = {};
  type.element = CASTOR_F32;
  type.rank = 1;
  type.dims = &dim;
  const castor_value x = castor_builder_input(builder, "x", &type);
  ASSERT_EQ(x, 0u);
  castor_builder_op(builder, &operation);
  expect_refused(castor_builder_finish(builder, &function, &error), expected, error, message);
  castor_builder_destroy(builder);
}

TEST(CCounts, OfOperations) {
  const AtEnd<castor_value> operand(0, 1);
  const AtEnd<int64_t> integer(1, 1);
  castor_attribute attribute = {};
  attribute.name = "overflow";
  attribute.kind = CASTOR_ATTRIBUTE_IDENTIFIER;
  attribute.text = "saturate";
  const AtEnd<castor_attribute> attributes(attribute, 1);
  const AtEnd<char> byte(0, 1);
  const castor_dim dim = {2, nullptr};
  castor_tensor_type type = {};
  type.element = CASTOR_F32;
  type.rank = 1;
  type.dims = &dim;
  for (const size_t many : {size_t{100}, size_t{1} << 30, SIZE_MAX}) {
    SCOPED_TRACE(many);
    const std::string found = "found " + std::to_string(many);
    castor_operation operation = {};
    operation.struct_size = sizeof operation;
    operation.op = "add";
    operation.operands = operand.get();
    operation.operand_count = many;
    expect_operation_refused(operation, CASTOR_INVALID_FUNCTION,
                             "add: " + found + " operands, expected 2");
    operation.op = "convert";
    operation.operand_count = 1;
    operation.attributes = attributes.get();
    operation.attribute_count = many;
    expect_operation_refused(operation, CASTOR_INVALID_FUNCTION,
                             "convert: " + found + " attributes, expected at most 3");
    castor_attribute list = {};
    list.name = "axes";
    list.kind = CASTOR_ATTRIBUTE_INTEGERS;
    list.integers = integer.get();
    list.count = many;
    operation.op = "broadcast";
    operation.attributes = &list;
    operation.attribute_count = 1;
    operation.type = &type;
    expect_operation_refused(operation, CASTOR_INVALID_ARGUMENT,
                             std::to_string(many) + " integers, expected at most 32");
    operation = {};
    operation.struct_size = sizeof operation;
    operation.op = "constant";
    operation.type = &type;
    operation.data = byte.get();
    operation.bytes = many;
    expect_operation_refused(operation, CASTOR_INVALID_FUNCTION,
                             "constant: " + found + " bytes, expected 8 for f32[2]");
  }
}

TEST(CCounts, OfConstants) {
  constexpr std::string_view bound =
      "func @f() -> (f32[2]) {\n  %c = constant @c : f32[2]\n  return %c\n}\n";
  const AtEnd<char> byte(0, 1);
  for (const size_t many : {size_t{0}, size_t{9}, size_t{1} << 30, SIZE_MAX}) {
    const castor_named_constant constant = {"c", byte.get(), many};
    castor_parse_options options = CASTOR_PARSE_OPTIONS;
    options.constants = &constant;
    options.constant_count = 1;
    castor_function* function = nullptr;
    castor_error error;
    expect_refused(
        castor_function_parse(bound.data(), bound.size(), nullptr, &options, &function, &error),
        CASTOR_INVALID_FUNCTION, error,
        "constant @c: found " + std::to_string(many) + " bytes, expected 8 for f32[2]");
  }
}

}  // namespace
}  // namespace castor::test
