// SPDX-License-Identifier: Apache-2.0
// Decimal literals as exact numbers.
#pragma once

#include <string_view>

#include "ir/numerics/unpacked.hpp"

namespace castor::text {

/// The value of `[-] digits [. digits] [e [+-] digits]`, cut to 64 significant bits with `inexact`
/// telling whether anything nonzero was cut: enough to round once, correctly, to every element
/// type. Any number of digits and any exponent; linear in the text's length. Magnitudes from 10^311
/// come back as 2^1100 and those below 10^-330 as 2^-1100, inexact: beyond every type's range.
/// Zero keeps its sign. Thread safe.
/// Source: exact integer ratios, as in W. D. Clinger, "How to Read Floating Point Numbers
/// Accurately", PLDI 1990, algorithm AlgorithmM.
numerics::Unpacked exact_decimal(std::string_view text);

}  // namespace castor::text
