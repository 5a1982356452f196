// SPDX-License-Identifier: Apache-2.0
// Exact numbers between decoding and encoding.
#pragma once

#include <cstdint>

#include "ir/types/convert_options.hpp"
#include "ir/types/element_type.hpp"

namespace castor::numerics {

enum class NumberClass : uint8_t { zero, finite, infinity, nan };

/// A number taken apart, exactly. Every element of every type fits: significands have at most
/// 64 bits, exponents stay within +-1100; those of products and quotients within +-2200.
struct Unpacked {
  NumberClass kind = NumberClass::zero;
  bool negative = false;
  /// finite: bit 63 is set, the value is significand * 2^(exponent - 63), that is 1.f * 2^exponent.
  /// nan: the mantissa field aligned to bit 62, so that bit 62 is the quiet bit.
  uint64_t significand = 0;
  int exponent = 0;
  /// finite: something nonzero, less than the significand's last place, was cut off.
  bool inexact = false;
};

/// Takes one element apart; `bits` in the low bits_of(type) bits.
Unpacked decode(uint64_t bits, ElementType type);

/// Rounds once and packs; the result in the low bits_of(type) bits. `from` is the type that the
/// number was decoded from: it selects the row of the conversion table (integers wrap to integers,
/// floats saturate to them).
uint64_t encode(const Unpacked& number, ElementType from, ElementType to,
                const ConvertOptions& options);

}  // namespace castor::numerics
