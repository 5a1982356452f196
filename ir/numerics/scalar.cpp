// SPDX-License-Identifier: Apache-2.0
// Conversion of one element: decode, round once, encode.
#include "ir/numerics/scalar.hpp"

#include "ir/numerics/format.hpp"
#include "ir/numerics/unpacked.hpp"

namespace castor::numerics {

namespace {

// ir/README.md, Convert, T to T: bits are copied, a signalling NaN's included; boolean is
// normalised; saturate still clamps infinities.
uint64_t convert_to_same_type(uint64_t bits, ElementType type, const ConvertOptions& options) {
  const uint64_t copied = bits & low_bits(bits_of(type));
  if (is_boolean(type)) return copied != 0;
  if (!is_float(type) || options.overflow != Overflow::saturate) return copied;
  const Unpacked number = decode(copied, type);
  return number.kind == NumberClass::infinity ? encode(number, type, type, options) : copied;
}

}  // namespace

uint64_t convert(uint64_t bits, ElementType from, ElementType to, const ConvertOptions& options) {
  if (from == to) return convert_to_same_type(bits, to, options);
  return encode(decode(bits, from), from, to, options);
}

}  // namespace castor::numerics
