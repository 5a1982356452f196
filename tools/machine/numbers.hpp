// SPDX-License-Identifier: Apache-2.0
// Bits as numbers: the domain in which meanings of instructions run concretely.
//
// A domain gives meanings their values (Bits: 1 to 64 of them) and the bytes of registers and
// memory. Symbols (symbols.hpp) is the other one; both have the same functions.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "tools/machine/floats.hpp"
#include "tools/prove/term/soft_float.hpp"

namespace castor::machine {

constexpr uint64_t low_bits(int width) { return ~uint64_t{0} >> (64 - width); }

/// A value of 1 to 64 bits; those from its width on are 0.
struct Number {
  uint64_t value = 0;
  int width = 1;

  int64_t as_signed() const { return static_cast<int64_t>(value << (64 - width)) >> (64 - width); }
};

class Numbers {
 public:
  using Bits = Number;
  using Byte = uint8_t;

  static Bits constant(int width, uint64_t value) { return {value & low_bits(width), width}; }
  /// The value, where the domain knows it.
  static std::optional<uint64_t> value_of(Bits a) { return a.value; }

  static int width(Bits a) { return a.width; }

  static Bits add(Bits a, Bits b) { return constant(a.width, a.value + b.value); }
  static Bits sub(Bits a, Bits b) { return constant(a.width, a.value - b.value); }
  static Bits mul(Bits a, Bits b) { return constant(a.width, a.value * b.value); }
  static Bits bit_and(Bits a, Bits b) { return {a.value & b.value, a.width}; }
  static Bits bit_or(Bits a, Bits b) { return {a.value | b.value, a.width}; }
  /// The same, for operands of which mostly one is 0: terms stay as small as their parts.
  static Bits or_of_parts(Bits a, Bits b) { return bit_or(a, b); }
  static Bits bit_xor(Bits a, Bits b) { return {a.value ^ b.value, a.width}; }
  static Bits bit_not(Bits a) { return constant(a.width, ~a.value); }
  /// By any number of bits: from the width on nothing is left but copies of what comes in.
  static Bits shift_left(Bits a, Bits by) {
    return constant(a.width, by.value >= uint64_t(a.width) ? 0 : a.value << by.value);
  }
  static Bits shift_right(Bits a, Bits by) {
    return {by.value >= uint64_t(a.width) ? 0 : a.value >> by.value, a.width};
  }
  static Bits shift_right_signed(Bits a, Bits by) {
    const auto most = static_cast<uint64_t>(a.width - 1);
    return constant(a.width, static_cast<uint64_t>(a.as_signed() >> std::min(by.value, most)));
  }
  static Bits equal(Bits a, Bits b) { return {a.value == b.value ? 1u : 0u, 1}; }
  static Bits less(Bits a, Bits b) { return {a.value < b.value ? 1u : 0u, 1}; }
  static Bits less_signed(Bits a, Bits b) { return {a.as_signed() < b.as_signed() ? 1u : 0u, 1}; }
  static Bits select(Bits condition, Bits yes, Bits no) { return condition.value != 0 ? yes : no; }
  static Bits extract(Bits a, int low, int width) { return constant(width, a.value >> low); }
  static Bits concat(Bits high, Bits low) {
    return {high.value << low.width | low.value, high.width + low.width};
  }
  static Bits extend_zero(Bits a, int width) { return {a.value, width}; }
  static Bits extend_sign(Bits a, int width) {
    return constant(width, static_cast<uint64_t>(a.as_signed()));
  }
  /// The entry at the index; there are 2^width of them.
  static Bits look_up(std::span<const Bits> entries, Bits index) { return entries[index.value]; }
  /// No number is data of unknown value.
  static std::optional<Bits> narrowed(Bits, int) { return std::nullopt; }

  // Floats of 16, 32 and 64 bits. A NaN comes out as the format's nan(): meanings say which it is.
  static Bits float_add(Bits a, Bits b, Rounding rounding) {
    return of(a.width, prove::soft::add(format_of(a.width), rounding, a.value, b.value));
  }
  static Bits float_mul(Bits a, Bits b, Rounding rounding) {
    return of(a.width, prove::soft::mul(format_of(a.width), rounding, a.value, b.value));
  }
  static Bits float_div(Bits a, Bits b, Rounding rounding) {
    return of(a.width, prove::soft::div(format_of(a.width), rounding, a.value, b.value));
  }
  static Bits float_sqrt(Bits a, Rounding rounding) {
    return of(a.width, prove::soft::sqrt(format_of(a.width), rounding, a.value));
  }
  static Bits float_fma(Bits a, Bits b, Bits c, Rounding rounding) {
    return of(a.width, prove::soft::fma(format_of(a.width), rounding, a.value, b.value, c.value));
  }
  static Bits float_round(Bits a, Rounding rounding) {
    return of(a.width, prove::soft::round(format_of(a.width), rounding, a.value));
  }
  static Bits float_convert(Bits a, int width, Rounding rounding) {
    return of(width, prove::soft::convert(format_of(a.width), format_of(width), rounding, a.value));
  }
  static Bits float_to_integer(Bits a, int width, bool is_signed, Rounding rounding) {
    return of(width,
              prove::soft::to_integer(format_of(a.width), rounding, width, is_signed, a.value));
  }
  static Bits float_from_integer(Bits a, int width, bool is_signed, Rounding rounding) {
    return of(width,
              prove::soft::from_integer(format_of(width), rounding, a.width, is_signed, a.value));
  }

  /// The value of 1 to 8 bytes, the first one lowest.
  static Bits join(const Byte* bytes, int count) {
    uint64_t value = 0;
    std::memcpy(&value, bytes, static_cast<size_t>(count));
    return {value, 8 * count};
  }
  static void split(Bits a, Byte* bytes) {
    std::memcpy(bytes, &a.value, static_cast<size_t>(a.width) / 8);
  }
  static Byte byte(uint8_t value) { return value; }
  /// The count of bytes, at most `most`, that are parts of one value: all, where values are
  /// numbers.
  static int run_of(const Byte*, int most) { return most; }
  static bool are_same(Bits a, Bits b) { return a.value == b.value; }

 private:
  static Bits of(int width, prove::Bits value) { return {static_cast<uint64_t>(value), width}; }
};

}  // namespace castor::machine
