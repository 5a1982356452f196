// SPDX-License-Identifier: Apache-2.0
// Layouts of tensors: strides, what they reach, and iteration over them.
#pragma once

#include <cstddef>
#include <optional>

#include "ir/shape/shape.hpp"
#include "tools/fuzz/random.hpp"

namespace castor::fuzz {

/// The number of elements of a shape of the fuzzer, which never overflows.
inline int64_t count_of(const Dims& shape) { return element_count(shape).value_or(0); }

/// Elements from the first to the last one, both counted; 0 when there are none.
int64_t reach_of(const Dims& shape, const Dims& strides);

/// The element of an operand that an elementwise function reads for element `element` of a result,
/// if axes are aligned on the right and those of 1 are repeated; nothing where shapes do not allow
/// that.
std::optional<int64_t> matching_element(int64_t element, const Dims& result, const Dims& operand);

/// Calls visit(distance from the first element, row-major index) for every element, in row-major
/// order. Distances are in elements.
template <class Visit>
void for_each_element(const Dims& shape, const Dims& strides, Visit visit) {
  const int64_t count = count_of(shape);
  Dims at = Dims::filled(shape.rank(), 0);
  int64_t distance = 0;
  for (int64_t index = 0; index < count; ++index) {
    visit(distance, index);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      distance += strides[axis];
      if (++at[axis] < shape[axis]) break;
      distance -= at[axis] * strides[axis];
      at[axis] = 0;
    }
  }
}

/// Which strides are drawn.
enum class StrideKind : uint8_t {
  any,
  dense,
  spread,  ///< row-major with a gap within every axis, so that no two axes merge
};

/// Strides of a tensor that reaches at most `max` elements (if a dense one does): dense, or with
/// gaps, or with permuted axes; axes that are never stepped along have any stride. With
/// `may_overlap` elements may have one address, as they may in inputs.
Dims draw_strides(Random& random, const Dims& shape, StrideKind strides, bool may_overlap,
                  int64_t max);

}  // namespace castor::fuzz
