// SPDX-License-Identifier: Apache-2.0
// Functions: lists of operations on tensor values in SSA form.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/attribute.hpp"
#include "ir/op.hpp"
#include "ir/shape/shape.hpp"
#include "ir/support/export.hpp"
#include "ir/support/result.hpp"
#include "ir/types/convert_options.hpp"

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
  std::string binding;           ///< name of `@name`; empty for literals
  std::vector<std::byte> bytes;  ///< as many as the type takes
};

/// Tells constants apart without reading them again: a hash of 128 bits (SipHash-2-4) under a key
/// that each process draws at random.
///
/// Constants with the same id count as equal, so that finding a known function costs the same
/// however big its constants are. What that risks: among n constants of one process, any two
/// different ones share an id with a probability of about n^2 / 2^129, below 2^-64 for four billion
/// constants; and nobody can prepare such a pair who does not know the key, which never leaves the
/// process (so ids may not be stored or sent). What it costs: about a nanosecond for each one to
/// two bytes, and for each five of 64 KiB and more, once, when the constant is built.
/// Interning the data would be exact, but needs a table that all threads of a process change.
class ContentId {
 public:
  /// Knows nothing, and is of no data.
  ContentId() = default;
  CASTOR_API explicit ContentId(std::shared_ptr<const ConstantData> data);

  /// Whether the id was computed from this very object, which it keeps alive.
  bool is_of(const std::shared_ptr<const ConstantData>& data) const { return data_ == data; }
  bool same_content(const ContentId& other) const {
    return low_ == other.low_ && high_ == other.high_;
  }
  /// The id as numbers: equal ones are of the same content.
  std::array<uint64_t, 2> words() const { return {low_, high_}; }

 private:
  std::shared_ptr<const ConstantData> data_;
  uint64_t low_ = 0;
  uint64_t high_ = 0;
};

struct Operation {
  OpKind op = OpKind::convert;
  std::vector<ValueId> operands{};
  Attributes attributes{};
  std::vector<ValueId> results{};
  std::optional<Shape> target{};  ///< target of `broadcast` and `reshape`, as it is written
  std::shared_ptr<const ConstantData> data{};  ///< data of `constant`, else null
  TextPosition where{};                        ///< in the text that it came from
  uint64_t data_hash = 0;  ///< content_hash of `data`; set when the operation is appended
  ContentId data_id{};     ///< identifies `data`; set when the operation is appended
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
  /// Bytes of the names of the function, its values, and the unknown dimensions of each. Set once,
  /// when the function is built.
  size_t name_bytes = 0;

  const TensorType& type_of(ValueId id) const { return values[id].type; }
};
using FunctionPtr = std::shared_ptr<const Function>;

/// The options of a `convert` operation, as its attributes give them (unverified names are
/// taken as defaults).
CASTOR_API ConvertOptions convert_options(const Operation& operation);

/// The attributes that say these options; defaults are not written.
CASTOR_API Attributes attributes_of(const ConvertOptions& options);

/// Hash of bytes, the same in every process. Well mixed, not cryptographic.
CASTOR_API uint64_t content_hash(std::span<const std::byte> bytes);

/// The value of `Function::hash`, from the operations' `data_hash`: reads no constant's bytes.
CASTOR_API uint64_t structural_hash(const Function& function);

/// Whether two functions compute the same: equal but for the names of functions, values and
/// constants, the order of attributes, and text positions. Names of unknown dimensions count.
/// Constants are compared by their ids, by their bytes only where an operation has none.
CASTOR_API bool same_computation(const Function& a, const Function& b);

}  // namespace castor
