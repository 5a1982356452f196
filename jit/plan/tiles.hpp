// SPDX-License-Identifier: Apache-2.0
// Tiles of an iteration space, for operands whose elements do not lie side by side in it.
#pragma once

#include <optional>
#include <vector>

#include "jit/plan/nest.hpp"

namespace castor::jit {

/// How the elements lie that a copy brings side by side.
enum class TileCopyKind : uint8_t {
  transposed,  ///< side by side along the other axis of tiles
  strided,     ///< a constant distance apart along both
};

/// An operand whose part of a tile is copied.
struct CopiedOperand {
  size_t operand = 0;
  TileCopyKind kind = TileCopyKind::strided;
};

/// How a nest with strided operands is done, or with short rows that have gaps between them: tile
/// by tile, two axes at a time. The inputs' parts of a tile are copied first, and the outputs'
/// parts last.
struct Tiles {
  std::vector<CopiedOperand> copies;
  int axis = 0;         ///< tiles lie along the innermost axis and this one; 0: there is no other
  int64_t columns = 0;  ///< elements of a whole tile along the innermost axis
  int64_t rows = 0;     ///< and along `axis`
  /// What code walks in a whole tile: a row of copies begins `columns` elements behind the one
  /// before.
  IterationSpace space;
};

/// The tiles of a space; nothing where code walks all operands well without, where an operand is
/// sub-byte, or where the innermost axis has periods.
std::optional<Tiles> plan_tiles(const Nest& nest, const IterationSpace& space);

}  // namespace castor::jit
