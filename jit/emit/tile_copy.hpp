// SPDX-License-Identifier: Apache-2.0
// Emits the code that copies a tile between two tensors with any strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/emit/emit_options.hpp"
#include "jit/kernel/spec.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// What the code takes: steps in bytes; columns and rows are at least 1.
struct TileCopy {
  const std::byte* source;
  int64_t source_step;      ///< from an element of a row to the next
  int64_t source_row_step;  ///< from a row's first element to the next row's
  std::byte* destination;
  int64_t destination_step;
  int64_t destination_row_step;
  int64_t columns;
  int64_t rows;
};

/// Everything that the code depends on.
struct TileCopySpec {
  static constexpr std::string_view name = "tile_copy";
  using Arguments = const TileCopy;

  int element_bytes = 1;  ///< 1, 2, 4 or 8

  static constexpr auto fields(const auto& list) {
    return list(field("element_bytes", &TileCopySpec::element_bytes));
  }
};

/// Emits the copy. No byte but the elements is written, and none before an element or after the
/// last one of a row is read. Two cases are fast: tiles of at least
/// `transposed_block_bytes` in both directions whose elements are consecutive in the destination's
/// rows and in the source's columns; and rows of every second to fourth element. All tiers use the
/// same code: with vectors of half the width it has twice the shuffles but takes no longer, and
/// rows that share a set of the cache fit it better.
Result<MachineCode> emit_kernel(const TileCopySpec& spec, const Target& target,
                                const EmitOptions& options = {});

/// Bytes of a row and of a column of the square blocks of elements that are transposed at once.
inline constexpr int transposed_block_bytes = 16;

}  // namespace castor::jit
