// SPDX-License-Identifier: Apache-2.0
// Views: how callers hand tensors in and out.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "ir/shape/shape.hpp"

namespace castor {

/// A tensor in the caller's memory. The element at coordinates c is element
/// `offset + sum(c[i] * strides[i])` of the array that begins at `data`, of which `bytes` bytes
/// may be touched. Sub-byte elements are counted in the storage order of their type.
/// A view owns nothing.
template <class Pointer>
struct BasicView {
  Pointer data = nullptr;
  ElementType element = ElementType::f32;
  Dims shape;
  Dims strides;        ///< in elements; as many as `shape` has dimensions
  int64_t offset = 0;  ///< in elements
  size_t bytes = 0;    ///< available at `data`

  BasicView() = default;
  BasicView(Pointer at, ElementType type, const Dims& extents, const Dims& steps,
            int64_t first_element, size_t available)
      : data(at),
        element(type),
        shape(extents),
        strides(steps),
        offset(first_element),
        bytes(available) {}
  /// A dense row-major tensor of exactly `size` bytes.
  BasicView(Pointer at, ElementType type, const Dims& extents, size_t size)
      : BasicView(at, type, extents, dense_strides(extents), 0, size) {}
  /// A read-only view of the same tensor.
  template <class Other>
  requires(!std::is_same_v<Other, Pointer> && std::is_convertible_v<Other, Pointer>)
      BasicView(const BasicView<Other>& other)
      : BasicView(other.data, other.element, other.shape, other.strides, other.offset,
                  other.bytes) {}
};

using View = BasicView<void*>;
using ConstView = BasicView<const void*>;

}  // namespace castor
