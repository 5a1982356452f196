// SPDX-License-Identifier: Apache-2.0
// Conversions of types of at most eight bits as tables: what each code becomes, computed on the
// host while lowering, in double precision.
#pragma once

#include <optional>

#include "ir/types/convert_options.hpp"
#include "jit/lane/program.hpp"

namespace castor::jit {

/// A conversion between a type of at most 8 bits and one of at most 16, by the low bits of the
/// source's code. Options are canonical and admitted. Nothing for wider types.
std::optional<ByteTable> conversion_table(ElementType from, ElementType to,
                                          const ConvertOptions& options);

/// The index bits of the table for codes of that many bits.
constexpr int conversion_table_bits(int bits) { return bits <= 4 ? 4 : bits <= 6 ? 6 : 8; }

/// The code of an integer in a type of at most 8 bits.
int code_of_integer(int64_t value, ElementType to, const ConvertOptions& options);

/// The bits of infinity in f16 and bf16; those of NaNs are above.
constexpr int infinity_bits(ElementType from) {
  const FloatFormat& format = info(from).format;
  return ((1 << format.exponent_bits) - 1) << format.mantissa_bits;
}

/// The code that a 16-bit float, given by its bits, has in a type of at most 8 bits. Only the top
/// two mantissa bits of NaNs count.
int converted_code(int bits, ElementType from, ElementType to, const ConvertOptions& options);

/// A conversion from bytes to wider elements that a store does by table.
struct StoreTable {
  ByteTable entries;
  Narrowing look_up = Narrowing::look_up_16;
};

/// Floats of 16 bits from any type of at most 8, 16-bit integers from floats, wider integers from
/// those of f8e4m3 and f8e4m3fnuz, and f32 from floats of 5 to 8 bits, and of 4 unless
/// `looks_up_f32`, so that 16 entries of 32 bits are one step; nothing where that is not the
/// fastest way.
std::optional<StoreTable> store_table(ElementType from, ElementType to,
                                      const ConvertOptions& options, bool looks_up_f32);

/// Whether a table of 16 entries, which are few to look up on every target, holds all codes.
constexpr bool has_f32_table(ElementType type) { return bits_of(type) <= 4; }
/// The f32 bits of the codes of a type that has_f32_table.
I32Table f32_table(ElementType type);

}  // namespace castor::jit
