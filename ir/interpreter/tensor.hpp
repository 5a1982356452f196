// SPDX-License-Identifier: Apache-2.0
// Tensors as the interpreter holds them, and the way in and out of the caller's memory.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/types/view.hpp"

namespace castor {

/// One value of a function: the raw bits of every element, row-major, each in the low
/// bits_of(element) bits of a word.
struct Tensor {
  ElementType element = ElementType::f32;
  Dims shape;
  std::vector<uint64_t> elements;
  QuantizationPtr quantization{};  ///< the value's
};

/// Reads every element of a checked view. Throws std::bad_alloc or std::length_error when memory
/// is refused. Reads nothing of a view without elements.
Tensor read_tensor(const ConstView& view);

/// Writes every element to a checked view of the tensor's element type and shape, and no bit
/// outside them, but that a dense row-major view from offset 0 gets the unused bits of its last
/// byte (split layouts: of its last three) as 0. Allocates nothing, cannot fail.
void write_tensor(const Tensor& tensor, const View& view);

}  // namespace castor
