// SPDX-License-Identifier: Apache-2.0
// Literals of elements: from a token to bits and back.
#pragma once

#include <cstdint>
#include <string>

#include "ir/support/result.hpp"
#include "ir/text/lexer.hpp"
#include "ir/types/element_type.hpp"

namespace castor::text {

/// The element's bits, in the low bits_of(type) bits. Decimals are rounded once, as `convert`
/// rounds to the type; a number outside the type's range is an error that names the range: one that
/// a format with infinities or NaNs would overflow to; for floats without NaN, nf4 and f8e8m0,
/// which have no overflow, one outside their smallest and largest number (so f8e8m0 has no 0).
/// `inf` and `nan` are read where the format has them; `nan` is the quiet NaN of sign 0 and payload
/// 0 (fnuz: the only one). 0x.. stands for the bits themselves. Source: ir/README.md, Text form.
Result<uint64_t> read_literal(const Token& token, ElementType type);

/// The literal that reads back to the same bits: a decimal, true, false, inf, -inf, nan, or else
/// the bit pattern. Floats always show a point or an exponent.
std::string literal_text(uint64_t bits, ElementType type);

}  // namespace castor::text
