// SPDX-License-Identifier: Apache-2.0
// Tiles of an iteration space, for operands whose elements are not consecutive in it.
#pragma once

#include <optional>
#include <vector>

#include "jit/plan/nest.hpp"

namespace castor::jit {

/// Where the elements are that a copy makes consecutive.
enum class TileCopyKind : uint8_t {
  transposed,  ///< consecutive along the other axis of tiles
  strided,     ///< a constant distance apart along both
  packed,      ///< sub-byte elements that are consecutive in rows, which begin anywhere
};

/// An operand whose part of a tile is copied.
struct CopiedOperand {
  size_t operand = 0;
  TileCopyKind kind = TileCopyKind::strided;
};

/// How a nest is done that has strided operands, or short rows with gaps between them or of equal
/// elements: tile by tile, two axes at a time. The inputs' parts of a tile are copied first, and
/// the outputs' parts last. Sub-byte operands are copied where they are packed; else their access
/// is bitwise, or uniform. Where they are transposed, tiles may be without copies, for the caches'
/// sake.
struct Tiles {
  std::vector<CopiedOperand> copies;
  int axis = 0;         ///< tiles span the innermost axis and this one; 0: there is no other
  int64_t columns = 0;  ///< elements of a whole tile along the innermost axis
  int64_t rows = 0;     ///< and along `axis`
  /// The iteration space of a whole tile: a row of copies begins `columns` elements after the one
  /// before.
  IterationSpace space;
};

/// The tiles of a space; nothing where no operand needs them, or where the innermost axis has
/// periods.
std::optional<Tiles> plan_tiles(const Nest& nest, const IterationSpace& space,
                                const Target& target);

}  // namespace castor::jit
