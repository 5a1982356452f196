// SPDX-License-Identifier: Apache-2.0
// One op, or one function, on raw bits: what the interpreter gives.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/builder.hpp"
#include "ir/interpreter/interpreter.hpp"
#include "ir/verify/infer.hpp"
#include "tools/testing/samples.hpp"

namespace castor::test {

/// A dense tensor, its elements one by one as raw bits.
struct Patterns {
  ElementType type = ElementType::f32;
  Dims shape;
  std::vector<uint64_t> elements;
  friend bool operator==(const Patterns&, const Patterns&) = default;
};

/// A tensor of rank 1.
inline Patterns row_of(ElementType type, std::vector<uint64_t> elements) {
  const Dims shape{static_cast<int64_t>(elements.size())};
  return {type, shape, std::move(elements)};
}

/// The first result of a function on these operands; a failure fails the running test and gives
/// an empty tensor.
inline Patterns interpreted(const Function& function, const std::vector<Patterns>& operands) {
  std::vector<Dims> shapes;
  std::vector<std::vector<std::byte>> sources;
  std::vector<ConstView> inputs;
  for (const Patterns& operand : operands) {
    shapes.push_back(operand.shape);
    sources.push_back(samples::pack(operand.type, operand.elements));
    inputs.emplace_back(sources.back().data(), operand.type, operand.shape, sources.back().size());
  }
  const Result<BoundShapes> bound = bind_shapes(function, shapes);
  EXPECT_TRUE(bound) << bound.error().to_string();
  if (!bound) return {};
  const ValueId id = function.results[0];
  Patterns result{function.type_of(id).element, bound->values[id], {}};
  const auto count = static_cast<size_t>(element_count(result.shape).value());
  std::vector<std::byte> bytes(samples::storage_bytes(result.type, count));
  const std::vector<View> outputs = {{bytes.data(), result.type, result.shape, bytes.size()}};
  const Status status = interpret(function, inputs, outputs);
  EXPECT_TRUE(status) << status.error().to_string();
  if (!status) return {};
  for (size_t i = 0; i < count; ++i) {
    result.elements.push_back(samples::load_pattern(bytes, result.type, i));
  }
  return result;
}

/// A function of one operation on parameters of these types and shapes, or null: the running test
/// has failed.
inline FunctionPtr function_of(OpKind op, const std::vector<Patterns>& operands,
                               Attributes attributes = {}, const WrittenType& written = {}) {
  FunctionBuilder builder("one");
  Operation operation{.op = op, .attributes = std::move(attributes)};
  for (const Patterns& operand : operands) {
    operation.operands.push_back(builder.parameter("", {operand.type, to_shape(operand.shape)}));
  }
  builder.result(builder.append(std::move(operation), written));
  const Result<FunctionPtr> function = builder.finish();
  EXPECT_TRUE(function) << name_of(op) << ": " << function.error().to_string();
  return function ? *function : nullptr;
}

/// The result of one op.
inline Patterns interpreted(OpKind op, const std::vector<Patterns>& operands,
                            Attributes attributes = {}, const WrittenType& written = {}) {
  const FunctionPtr function = function_of(op, operands, std::move(attributes), written);
  return function ? interpreted(*function, operands) : Patterns{};
}

/// The result of one op on one element of each operand, all of one type.
inline uint64_t result_of(OpKind op, ElementType type, const std::vector<uint64_t>& elements,
                          Attributes attributes = {}) {
  std::vector<Patterns> operands;
  for (uint64_t bits : elements) operands.push_back(row_of(type, {bits}));
  const Patterns result = interpreted(op, operands, std::move(attributes));
  EXPECT_EQ(result.elements.size(), 1u);
  return result.elements.empty() ? ~uint64_t{0} : result.elements[0];
}

}  // namespace castor::test
