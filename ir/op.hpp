// SPDX-License-Identifier: Apache-2.0
// The op table. One row declares an op; parser, printer, verifier, interpreter, lowering and
// documentation follow it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace castor {

enum class OpKind : uint8_t {
  constant,  ///< a tensor known when the function is built
  convert,   ///< elementwise conversion (OpenVINO Convert-1; DESIGN.md, Numerics)
};
inline constexpr int op_count = 2;

/// What the text form writes after the colon of an operation.
enum class TypeSuffix : uint8_t {
  optional_type,  ///< may be written; checked against the inferred type
  element,        ///< required: the result's element type
  shape,          ///< required: the target shape, `[2, 3]`
  tensor,         ///< required: the full type, `f32[2, 3]`
};

enum class AttributeKind : uint8_t { integer, floating, boolean, identifier, string, list };

/// One attribute that an op admits.
struct AttributeRule {
  std::string_view name;
  AttributeKind kind;
  std::span<const std::string_view> choices{};  ///< of an identifier; empty: any
  bool required = false;
};

/// How the result types follow from the operands; see ir/infer.cpp.
enum class InferRule : uint8_t {
  as_written,        ///< the type suffix is the type
  element_as_named,  ///< the operand's shape with the element type of the suffix
};

/// One row of the table.
struct OpInfo {
  OpKind op;
  std::string_view name;
  int operands;
  int results;
  TypeSuffix suffix;
  InferRule infer;
  std::span<const AttributeRule> attributes;
  std::string_view meaning;
};

const std::array<OpInfo, op_count>& op_table();
const OpInfo& info(OpKind op);
std::string_view name_of(OpKind op);
std::optional<OpKind> op_named(std::string_view name);

}  // namespace castor
