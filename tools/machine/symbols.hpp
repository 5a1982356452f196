// SPDX-License-Identifier: Apache-2.0
// Bits as terms: the domain in which meanings of instructions run symbolically. The functions are
// those of Numbers.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tools/machine/floats.hpp"
#include "tools/prove/term/term.hpp"

namespace castor::machine {

/// Byte `index` of a term, whose width is whole bytes. Bytes of one term become it again without
/// any concatenation.
struct SymbolByte {
  prove::Term term;
  uint8_t index = 0;
};

class Symbols {
 public:
  using Bits = prove::Term;
  using Byte = SymbolByte;

  explicit Symbols(prove::Terms& terms);

  prove::Terms& terms() const { return terms_; }
  Bits constant(int width, uint64_t value) const {
    return terms_.constant(width, value & static_cast<uint64_t>(prove::low_mask(width)));
  }
  static std::optional<uint64_t> value_of(Bits a);

  static int width(Bits a) { return a.width(); }

  static Bits add(Bits a, Bits b) { return a + b; }
  static Bits sub(Bits a, Bits b) { return a - b; }
  /// A power of two shifts, so that the zeros that come in are seen.
  static Bits mul(Bits a, Bits b);
  static Bits bit_and(Bits a, Bits b) { return a & b; }
  static Bits or_of_parts(Bits a, Bits b);
  static Bits bit_or(Bits a, Bits b) { return a | b; }
  static Bits bit_xor(Bits a, Bits b) { return a ^ b; }
  static Bits bit_not(Bits a) { return ~a; }
  static Bits shift_left(Bits a, Bits by) { return prove::shift_left(a, by); }
  static Bits shift_right(Bits a, Bits by) { return prove::shift_right(a, by); }
  static Bits shift_right_signed(Bits a, Bits by) { return prove::shift_right_signed(a, by); }
  static Bits equal(Bits a, Bits b) { return prove::equal(a, b); }
  static Bits less(Bits a, Bits b) { return prove::less_unsigned(a, b); }
  static Bits less_signed(Bits a, Bits b) { return prove::less_signed(a, b); }
  static Bits select(Bits condition, Bits yes, Bits no) {
    return prove::if_then_else(condition, yes, no);
  }
  /// Bits of a truth value that was made as wide as a lane are that value again.
  static Bits extract(Bits a, int low, int width);
  static Bits concat(Bits high, Bits low) { return prove::concat(high, low); }
  static Bits extend_zero(Bits a, int width) { return prove::extend_zero(a, width); }
  static Bits extend_sign(Bits a, int width) { return prove::extend_sign(a, width); }
  Bits look_up(std::span<const Bits> entries, Bits index) const;
  /// The low bits, at most `most`, above which all are 0; nothing where there are more.
  static std::optional<Bits> narrowed(Bits a, int most);

  static Bits float_add(Bits a, Bits b, Rounding rounding);
  static Bits float_mul(Bits a, Bits b, Rounding rounding);
  static Bits float_div(Bits a, Bits b, Rounding rounding);
  static Bits float_sqrt(Bits a, Rounding rounding);
  static Bits float_fma(Bits a, Bits b, Bits c, Rounding rounding);
  static Bits float_round(Bits a, Rounding rounding);
  static Bits float_convert(Bits a, int width, Rounding rounding);
  static Bits float_to_integer(Bits a, int width, bool is_signed, Rounding rounding);
  static Bits float_from_integer(Bits a, int width, bool is_signed, Rounding rounding);

  static Bits join(const Byte* bytes, int count);
  static void split(Bits a, Byte* bytes);
  /// The count of bytes, at most `most`, that are consecutive ones of one term, or constants. Logic
  /// on that many bytes keeps lanes apart, whatever the instruction's lanes are.
  static int run_of(const Byte* bytes, int most);
  static bool are_same(Bits a, Bits b) { return a.same_as(b); }
  Byte byte(uint8_t value) const { return constant_bytes_[value]; }

 private:
  prove::Terms& terms_;
  std::vector<Byte> constant_bytes_;
};

}  // namespace castor::machine
