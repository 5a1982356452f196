// SPDX-License-Identifier: Apache-2.0
// Literals of elements: from a token to bits and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/element_type.hpp"
#include "ir/result.hpp"
#include "ir/text/lexer.hpp"

namespace castor::text {

/// The element's bits, in the low bits_of(type) bits; `type` is implemented. Decimals are rounded
/// once, to the nearest, ties to even; a number outside the type's range is an error that names the
/// range. `nan` is the quiet NaN of sign 0 and payload 0. 0x.. stands for the bits themselves.
/// Source: DESIGN.md, IR, literals.
Result<uint64_t> read_literal(const Token& token, ElementType type);

/// The literal that reads back to the same bits: a decimal, true, false, inf, -inf, nan, or else
/// the bit pattern. Floats always show a point or an exponent.
std::string literal_text(uint64_t bits, ElementType type);

/// Appends one element in storage order; types of whole bytes only, as every implemented one.
void append_element(std::vector<std::byte>& bytes, uint64_t bits, ElementType type);

/// The bits of element `index` of dense data; types of whole bytes only.
uint64_t element_at(std::span<const std::byte> bytes, size_t index, ElementType type);

}  // namespace castor::text
