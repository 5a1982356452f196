// SPDX-License-Identifier: Apache-2.0
// How tiles of dense kernels end.
//
// A core takes up only about a dozen stores whose data are still to be computed; what is behind
// them has to wait, so that a tile of two dozen sums, all stored after its last tap, costs 40
// cycles more than its products (Golden Cove; 8 with what follows). So the last taps are done for
// one group of rows after another, each of which is stored before the next begins. A row is what
// one broadcast dword is multiplied for: an output channel with pixels in the lanes, a pixel with
// channels in the lanes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "jit/target.hpp"

namespace castor::jit {

/// Some rows of a tile.
struct TileRows {
  int begin = 0;
  int end = 0;
};

/// Rows of a group: about eight vectors.
constexpr int rows_of_group(int vectors) { return std::max(1, 8 / vectors); }

/// How many of the taps of a tile are done group by group: three or four keep the products busy
/// until the stores of a group have been taken up; an even number is left. Where groups would be
/// single rows, of many vectors, loading these again for each group costs more than it gains; with
/// 16 registers there are too few sums.
inline int last_taps_of(size_t taps, int vectors, const Target& target) {
  constexpr size_t max = 4;
  if (!target.has_avx512() || rows_of_group(vectors) == 1) return 0;
  return static_cast<int>(taps <= max ? taps : max - taps % 2);
}

}  // namespace castor::jit
