// SPDX-License-Identifier: Apache-2.0
// Source tensors for the benchmark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/types/element_type.hpp"

namespace castor::bench {

/// `count` elements of type `from`, in storage, spread evenly over the values that both types can
/// hold (those beyond 2^40 left out): no NaNs, infinities or overflows. From
/// f8e8m0, and to it from floats, spread evenly over the exponents. Depends on its arguments
/// alone.
std::vector<std::byte> ordinary_tile(ElementType from, ElementType to, size_t count);

/// Elements of a tile that is repeated to fill a tensor.
inline constexpr size_t tile_elements = size_t{1} << 14;

/// Fills the tensor with copies of the tile; the last one is cut off.
void fill(std::span<std::byte> tensor, std::span<const std::byte> tile);

}  // namespace castor::bench
