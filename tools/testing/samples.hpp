// SPDX-License-Identifier: Apache-2.0
// Element patterns worth testing, shared by the tests, `castor check` and the fuzzer.
//
// A pattern is one element's raw bits in the low bits_of(type) bits of a word. The generators
// know formats only, none of castor's numerics. All functions are pure and thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/types/element_type.hpp"

namespace castor::samples {

/// Every pattern of a type of at most 16 bits, ascending; 0..255 for boolean.
std::vector<uint64_t> all_patterns(ElementType type);

/// The patterns at which conversions and arithmetic go wrong, ascending and without repetition:
/// every pattern of a type of up to 8 bits; for wider integers the values of 8-bit types, limits,
/// powers of two and the rounding midpoints of every float format, each with both neighbours and
/// negated; for wider floats zeros, subnormals, powers of two, integers plus a half, the limits of
/// the integer types, the rounding midpoints of every narrower format, f8e8m0 and nf4 included,
/// each with both neighbours, infinities and NaNs (quiet, signalling, many payloads), of either
/// sign. Midpoints are complete for formats of up to 8 bits; of wider ones, a few of each binade
/// (f32: of some binades). Some ten thousand for the widest types.
std::vector<uint64_t> boundary_patterns(ElementType type);

/// `count` patterns that depend on `type` and `seed` alone, on any machine. Even indices hold
/// uniform bits; odd ones hold values of uniformly distributed magnitude near the ranges of the
/// other types, with few significant bits as often as with many.
std::vector<uint64_t> random_patterns(ElementType type, size_t count, uint64_t seed);

/// Bytes that `count` elements take in storage.
size_t storage_bytes(ElementType type, size_t count);

/// Element `index` of a dense tensor in its type's storage order.
uint64_t load_pattern(std::span<const std::byte> tensor, ElementType type, size_t index);

/// Sets element `index`; `pattern` has no bits above bits_of(type).
void store_pattern(std::span<std::byte> tensor, ElementType type, size_t index, uint64_t pattern);

/// A dense tensor of these elements; unused bits are 0.
std::vector<std::byte> pack(ElementType type, std::span<const uint64_t> patterns);

}  // namespace castor::samples
