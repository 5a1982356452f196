// SPDX-License-Identifier: Apache-2.0
// The lower and the upper bytes of the 16-bit lanes of two vectors of 512 bits, each as one vector
// of bytes. A permutation of two sources takes the bytes in order (VBMI); it occupies Intel's
// shuffle port for two cycles. A shift and a merge need not go there, and leave the bytes of the
// two vectors by turns, until the results' last shuffle.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

/// How they are taken: in order, by a permutation of two sources, or by turns.
enum class BytesApart : uint8_t { by_permutation, by_merges };

/// The element, of the 64 that two vectors have, that byte i of either vector of bytes is of.
constexpr int element_of_byte(BytesApart form, int i) {
  return form == BytesApart::by_permutation ? i : i / 2 + (i % 2 == 0 ? 0 : 32);
}

/// The position of lane i's byte among merged ones, of which the lower vector has the even ones.
constexpr int merged_byte(int i) { return i < 32 ? 2 * i : 2 * (i - 32) + 1; }

/// vpermb: puts merged bytes in order.
inline std::vector<uint8_t> order_of_merged() { return vector_constant<uint8_t>(512, merged_byte); }

}  // namespace castor::jit
