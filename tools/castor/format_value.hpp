// SPDX-License-Identifier: Apache-2.0
// Elements as people read them.
#pragma once

#include <cstdint>
#include <string>

#include "ir/types/element_type.hpp"

namespace castor::tools {

/// The value of raw bits: "-3", "0.1", "inf", "nan", "true"; floats as the shortest decimal that
/// reads back to the same value.
std::string format_value(uint64_t bits, ElementType type);

/// The raw bits in hexadecimal with every digit that the type has: "0x3F80".
std::string format_bits(uint64_t bits, ElementType type);

/// Both: "0.1 (0x3DCCCCCD)".
std::string format_element(uint64_t bits, ElementType type);

}  // namespace castor::tools
