// SPDX-License-Identifier: Apache-2.0
// Whether two strided tensors share a byte.
#pragma once

#include <cstdint>

#include "ir/shape/shape.hpp"
#include "ir/support/export.hpp"

namespace castor {

/// Where the elements of a tensor are in memory. Memory is a sequence of units of `unit_bytes`
/// bytes, each of which has `unit_parts` parts, at any of which an element may begin: bytes of 8
/// bits for elements of less than a byte, groups of three bytes for the split layouts, and else
/// units of one part, an element. Whoever touches an element touches the whole units that have
/// parts of it.
struct ElementOffsets {
  uintptr_t begin = 0;        ///< address of the unit in which the first element begins
  int64_t unit_bytes = 1;     ///< 1 or more
  int64_t unit_parts = 1;     ///< 1 or more
  int64_t first_part = 0;     ///< at which the first element begins, in its unit
  int64_t element_parts = 1;  ///< that an element takes, 1 or more
  Dims extents;
  Dims strides;  ///< in parts, of any sign; of an axis of one element it means nothing
};

enum class Overlap : uint8_t { apart, shared, undecided };

/// Steps (see sum_reaches) that deciding a pair of tensors may take: about 0.05 us each, so less
/// than a millisecond in all. Two parts of one array (first indices, extents and steps along each
/// of up to six axes) take less than a thousand, most of them ten.
inline constexpr int64_t max_overlap_steps = 1 << 14;

/// Whether some byte belongs to units that both tensors touch. The answer is exact, and undecided
/// only where it takes more than `steps` steps, which are subtracted, or where a tensor reaches
/// 2^59 bytes or more. Thread safe, allocates nothing.
///
/// The way: contiguous axes become wider elements; axes whose stride is no multiple of a unit
/// become one tensor for each part at which their elements begin; what is left is whether a sum of
/// bounded multiples, the strides, can be one of the distances at which two elements meet.
/// Shown by the shared library for castor_mli alone.
CASTOR_API Overlap find_overlap(const ElementOffsets& a, const ElementOffsets& b, int64_t& steps);

}  // namespace castor
