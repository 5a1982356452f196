// SPDX-License-Identifier: Apache-2.0
// Elements in storage, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/types/element_type.hpp"

namespace castor {

/// The bits of element `index` (0 or more) of a tensor that begins at `data`, in the low
/// bits_of(type) bits. Reads the bytes that hold them only.
uint64_t read_element(const std::byte* data, ElementType type, int64_t index);

/// Sets element `index` to the low bits_of(type) bits of `bits`, and no other bit.
void write_element(std::byte* data, ElementType type, int64_t index, uint64_t bits);

/// Sets to 0 the bits that the first `count` elements leave unused in their bytes (split layouts:
/// in their groups of three bytes).
void clear_unused_bits(std::byte* data, ElementType type, int64_t count);

}  // namespace castor
