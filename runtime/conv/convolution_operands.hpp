// SPDX-License-Identifier: Apache-2.0
// What convolutions of every form know of their operands.
#pragma once

#include <cstddef>
#include <span>

namespace castor::detail {

/// What is known of a convolution's operands besides their extents. They are those of its nest: x,
/// w, then the zero points that there are, and y.
struct ConvolutionOperands {
  bool x_is_signed = false;
  bool w_is_signed = false;
  int x_zero_point = -1;  ///< which operand; -1: none
  int w_zero_point = -1;
  bool zero_points_per_channel = false;
};

/// The data of an operand with that number, which may be -1; null where it is not there. Of
/// constants, null as well where it is not one.
inline const std::byte* data_of(int operand, std::span<const std::byte* const> operands) {
  return operand < 0 ? nullptr : operands[static_cast<size_t>(operand)];
}

/// Whether an operand that may not be there is known to be what `data_of` gives.
inline bool is_known(int operand, std::span<const std::byte* const> constants) {
  return operand < 0 || constants[static_cast<size_t>(operand)] != nullptr;
}

}  // namespace castor::detail
