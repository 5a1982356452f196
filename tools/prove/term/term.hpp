// SPDX-License-Identifier: Apache-2.0
// Terms: functions of bit-vectors as a DAG in which equal nodes are one node.
//
// A Term is a handle on a node of a Terms; operands of one operation belong to one Terms. Widths
// are 1 to 128 bits; truth values have width 1. The functions below simplify as they build: of
// constant operands they give a constant, so that building on constants is computing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/prove/term/float_format.hpp"
#include "tools/prove/term/value.hpp"

namespace castor::prove {

enum class TermOp : uint8_t {
  constant,
  input,
  // Operands and result have one width; a shift by its width or more gives 0 or the sign.
  add,
  mul,
  udiv,  ///< a division by 0 gives ones
  urem,  ///< and the dividend as its remainder
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  shift_right_signed,
  extract,  ///< bits from `detail` on
  concat,   ///< a above b
  extend_sign,
  if_then_else,
  // Comparisons, of width 1.
  equal,
  less_unsigned,
  less_signed,
  table,  ///< entry a of a constant table, number `detail`
  // Floats, as soft_float.hpp says; the format and rounding are packed in `detail`.
  float_add,
  float_mul,
  float_div,
  float_sqrt,
  float_fma,
  float_remainder,
  float_round,
  float_convert,
  float_to_signed,
  float_to_unsigned,
  signed_to_float,
  unsigned_to_float,
};
std::string_view name_of(TermOp op);
inline constexpr int max_operands = 3;

/// Formats and rounding of a float node; `from` is the operand's format where a float is converted.
struct FloatDetail {
  FloatFormat format;
  FloatFormat from;
  Rounding rounding = Rounding::nearest_even;

  uint64_t packed() const;
  static FloatDetail unpacked(uint64_t detail);
};

struct Node {
  TermOp op = TermOp::constant;
  uint8_t width = 0;
  uint8_t operand_count = 0;
  std::array<uint32_t, max_operands> operands = {};
  uint64_t detail = 0;  ///< extract: lowest bit; table, input: number; floats: FloatDetail
  Bits value = 0;       ///< that a constant has
  uint64_t hash = 0;    ///< covers the whole term; the same in each process
};

class Terms;

class Term {
 public:
  Term() = default;  ///< no term, to be assigned
  Term(Terms* terms, uint32_t id) : terms_(terms), id_(id) {}

  explicit operator bool() const { return terms_ != nullptr; }
  Terms& terms() const { return *terms_; }
  uint32_t id() const { return id_; }
  const Node& node() const;
  int width() const { return node().width; }
  TermOp op() const { return node().op; }
  Term operand(int index) const { return {terms_, node().operands[static_cast<size_t>(index)]}; }
  bool is_constant() const { return op() == TermOp::constant; }
  /// Whether it is the constant `value`, all ones where that is ~0.
  bool is_constant(Bits value) const;
  Bits value() const { return node().value; }  ///< that a constant has
  /// Whether two handles have the same node: equal functions, though not all of them.
  bool same_as(const Term& other) const { return id_ == other.id_; }

 private:
  Terms* terms_ = nullptr;
  uint32_t id_ = 0;
};

/// Owns nodes, inputs' names and tables. Not for several threads at once.
class Terms {
 public:
  Terms() = default;
  Terms(const Terms&) = delete;
  Terms& operator=(const Terms&) = delete;

  Term constant(int width, Bits value);
  Term truth(bool value) { return constant(1, value ? 1 : 0); }
  /// A new input; inputs are numbered in the order in which they are made.
  Term input(std::string name, int width);
  /// entries[index] of `width` bits; the table has 2^(index's width) entries.
  Term table(std::span<const uint64_t> entries, int width, const Term& index);
  /// The node of an operation as it stands, with nothing simplified but constants.
  Term make(TermOp op, int width, std::span<const Term> operands, uint64_t detail = 0);

  const Node& node(uint32_t id) const { return nodes_[id]; }
  size_t node_count() const { return nodes_.size(); }
  size_t input_count() const { return input_names_.size(); }
  const std::string& input_name(size_t input) const { return input_names_[input]; }
  const std::vector<uint64_t>& table_entries(uint64_t table) const { return tables_[table]; }
  uint64_t table_hash(uint64_t table) const { return table_hashes_[table]; }

 private:
  Term interned(Node node);
  uint64_t hash_of(const Node& node) const;

  std::vector<Node> nodes_;
  std::unordered_multimap<uint64_t, uint32_t> ids_;  ///< by hash
  std::vector<std::string> input_names_;
  std::vector<std::vector<uint64_t>> tables_;
  std::vector<uint64_t> table_hashes_;
};

inline const Node& Term::node() const { return terms_->node(id_); }

/// The value of an operation on given values, without any terms.
Bits compute(const Terms& terms, const Node& node, std::span<const Bits> operands);

Term operator+(const Term& a, const Term& b);
Term operator-(const Term& a, const Term& b);
Term operator-(const Term& a);
Term operator*(const Term& a, const Term& b);
Term operator&(const Term& a, const Term& b);
Term operator|(const Term& a, const Term& b);
Term operator^(const Term& a, const Term& b);
Term operator~(const Term& a);
Term udiv(const Term& a, const Term& b);
Term urem(const Term& a, const Term& b);
/// Shifts by another term of the same width, read as unsigned.
Term shift_left(const Term& a, const Term& count);
Term shift_right(const Term& a, const Term& count);
Term shift_right_signed(const Term& a, const Term& count);

/// A constant of a's width.
Term like(const Term& a, Bits value);
Term operator+(const Term& a, Bits b);
Term operator-(const Term& a, Bits b);
Term operator*(const Term& a, Bits b);
Term operator&(const Term& a, Bits b);
Term operator|(const Term& a, Bits b);
Term operator^(const Term& a, Bits b);
Term shift_left(const Term& a, int count);
Term shift_right(const Term& a, int count);
Term shift_right_signed(const Term& a, int count);

/// Bits low .. low + width - 1.
Term extract(const Term& a, int low, int width);
Term truncate(const Term& a, int width);
Term bit(const Term& a, int index);
/// `high` above `low`.
Term concat(const Term& high, const Term& low);
Term extend_zero(const Term& a, int width);
Term extend_sign(const Term& a, int width);
/// Extended with zeros or cut.
Term resize_zero(const Term& a, int width);
/// All bits set where the truth value holds, else 0.
Term mask_of(const Term& truth, int width);

Term if_then_else(const Term& condition, const Term& a, const Term& b);
Term equal(const Term& a, const Term& b);
Term not_equal(const Term& a, const Term& b);
Term less_unsigned(const Term& a, const Term& b);
Term less_signed(const Term& a, const Term& b);
Term at_most_unsigned(const Term& a, const Term& b);
Term at_most_signed(const Term& a, const Term& b);
Term equal(const Term& a, Bits b);
Term less_unsigned(const Term& a, Bits b);
Term less_signed(const Term& a, Bits b);
Term min_unsigned(const Term& a, const Term& b);
Term max_unsigned(const Term& a, const Term& b);
Term min_signed(const Term& a, const Term& b);
Term max_signed(const Term& a, const Term& b);
/// entries[index], of 2^(index's width); the choice by the index's top bit is the outermost one.
Term entry_of(std::span<const Term> entries, const Term& index);
/// The count of zero bits above the highest one that is set, of a's width.
Term leading_zeros(const Term& a);

}  // namespace castor::prove
