// SPDX-License-Identifier: Apache-2.0
// Functions: lists of operations on tensor values in SSA form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/attribute.hpp"
#include "ir/convert_options.hpp"
#include "ir/op.hpp"
#include "ir/result.hpp"
#include "ir/shape.hpp"

namespace castor {

/// Index into `Function::values`.
using ValueId = uint32_t;
/// An optional operand that is absent: `none` in the text form.
inline constexpr ValueId no_value = ~ValueId{0};

struct Value {
  std::string name;  ///< without the percent sign; unique in its function
  TensorType type;
};

/// The data of a `constant`: dense, in the storage order of its type. Shared, never copied.
struct ConstantData {
  std::string binding;           ///< of `@name`; empty for literals
  std::vector<std::byte> bytes;  ///< as many as the type takes
};

struct Operation {
  OpKind op = OpKind::convert;
  std::vector<ValueId> operands{};
  Attributes attributes{};
  std::vector<ValueId> results{};
  std::shared_ptr<const ConstantData> data{};  ///< of `constant`, else null
  TextPosition where{};                        ///< in the text that it came from
  uint64_t data_hash = 0;  ///< content_hash of `data`; set when the operation is appended
};

/// A verified function. Immutable; shared between threads by FunctionPtr. Operations stand in an
/// order in which every value is defined before it is used.
struct Function {
  std::string name;
  std::vector<Value> values;
  std::vector<ValueId> parameters;
  std::vector<Operation> operations;
  std::vector<ValueId> results;          ///< may repeat, may name parameters
  std::vector<TensorType> result_types;  ///< as declared by the signature
  Attributes attributes;                 ///< e.g. excess_precision = allow
  /// Hash over everything that the result depends on: types, ops, attributes, constants, and not
  /// the names of function and values. Set once, when the function is built.
  uint64_t hash = 0;

  const TensorType& type_of(ValueId id) const { return values[id].type; }
};
using FunctionPtr = std::shared_ptr<const Function>;

/// The options of a `convert` operation, as its attributes give them (unverified names are
/// taken as defaults).
ConvertOptions convert_options(const Operation& operation);

/// The attributes that say these options; defaults are not written.
Attributes attributes_of(const ConvertOptions& options);

/// Hash of a constant's bytes: its content id. Well mixed, not cryptographic.
uint64_t content_hash(std::span<const std::byte> bytes);

/// The value of `Function::hash`, from the operations' `data_hash`: reads no constant's bytes.
uint64_t structural_hash(const Function& function);

/// Whether two functions compute the same: equal but for the names of functions, values and
/// constants, the order of attributes, and text positions. Names of unknown dimensions count.
bool same_computation(const Function& a, const Function& b);

}  // namespace castor
