// SPDX-License-Identifier: Apache-2.0
// Tile registers: their configuration, and products by the meaning of a row of the table (AMX-TILE,
// AMX-INT8; Intel SDM, volume 1, chapter 18).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "tools/machine/meaning.hpp"

namespace castor::machine {

inline constexpr size_t tile_count = 8;
inline constexpr int max_tile_rows = 16;
inline constexpr int max_tile_row_bytes = 64;

using TileConfigBytes = std::array<uint8_t, 64>;

/// Rows and bytes of a row of each tile; zeros: not configured.
struct TileShape {
  int rows = 0;
  int row_bytes = 0;
  bool is_configured() const { return rows > 0; }
};
using TileShapes = std::array<TileShape, tile_count>;

/// What ldtilecfg makes of 64 bytes; nothing where it raises #GP. Palette 0 configures no tile.
inline std::optional<TileShapes> tile_shapes(const TileConfigBytes& config) {
  TileShapes shapes;
  if (config[0] == 0) return shapes;
  const auto is_zero = [&](size_t begin, size_t end) {
    return std::all_of(config.begin() + static_cast<ptrdiff_t>(begin),
                       config.begin() + static_cast<ptrdiff_t>(end),
                       [](uint8_t byte) { return byte == 0; });
  };
  // Bytes 32 to 47 and 56 to 63 are of tiles that there are not.
  if (config[0] != 1 || !is_zero(2, 16) || !is_zero(32, 48) || !is_zero(56, 64)) {
    return std::nullopt;
  }
  for (size_t t = 0; t < tile_count; ++t) {
    TileShape& shape = shapes[t];
    shape.row_bytes = config[16 + 2 * t] | config[17 + 2 * t] << 8;
    shape.rows = config[48 + t];
    if (shape.rows > max_tile_rows || shape.row_bytes > max_tile_row_bytes) return std::nullopt;
    if ((shape.rows == 0) != (shape.row_bytes == 0)) return std::nullopt;
  }
  return shapes;
}

/// One tile register; what is not configured of it is zero.
template <class D>
struct Tile {
  TileShape shape;
  std::array<Vector<D>, max_tile_rows> rows;

  bool is_configured() const { return shape.is_configured(); }
  void clear(D& domain) { rows.fill(zero_vector(domain)); }
};

/// Whether three tiles, no two of them one, are a sum and its factors; all others raise #UD.
inline bool are_factors(const TileShape& sum, const TileShape& a, const TileShape& b) {
  const bool are_configured = sum.is_configured() && a.is_configured() && b.is_configured();
  return are_configured && a.rows == sum.rows && a.row_bytes % 4 == 0 &&
         a.row_bytes / 4 == b.rows && b.row_bytes == sum.row_bytes && sum.row_bytes % 4 == 0;
}

/// sum += a * b: row by row of the sum, each element of a's row with a row of b, as the row's
/// meaning has it of vectors.
template <class D>
void multiply_tiles(D& domain, const Row& row, Tile<D>& sum, const Tile<D>& a, const Tile<D>& b) {
  Step<D> step{.domain = domain, .vector_bits = 8 * sum.shape.row_bytes};
  step.from.fill(zero_vector(domain));
  step.result = zero_vector(domain);
  for (size_t m = 0; m < static_cast<size_t>(sum.shape.rows); ++m) {
    step.old = sum.rows[m];
    for (size_t k = 0; k < static_cast<size_t>(b.shape.rows); ++k) {
      for (size_t i = 0; i < step.from[0].size(); ++i) {
        step.from[0][i] = a.rows[m][4 * k + i % 4];
      }
      step.from[1] = b.rows[k];
      row.template on<D>()(step, row);
      step.old = step.result;
    }
    sum.rows[m] = step.old;
  }
}

}  // namespace castor::machine
