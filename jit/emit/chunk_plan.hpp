// SPDX-License-Identifier: Apache-2.0
// How many elements the code of a nest does at a time, and how far its main loop is unrolled.
#pragma once

#include "jit/plan/nest.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// What the emitter decides about a nest before it emits: visible in `castor dump --stage nest`.
struct ChunkPlan {
  int lanes = 0;               ///< elements of a chunk: the widest lane type fills a vector
  int chunks = 0;              ///< chunks of one iteration of the main loop
  bool packs = false;          ///< narrow elements are collected to full vectors
  bool has_main_loop = false;  ///< false where an operand is strided: chunk by chunk
  bool has_windows = false;    ///< sub-byte operands go through windows, in groups of chunks
  bool has_tiles = false;      ///< they go through windows of tile_elements
  /// Whose codes index a table for each row, or for each block of a row (emit/row_table.hpp).
  int table_operand = -1;
  int table_block = 0;          ///< elements that share a table; 0: all of a row
  bool scales_codes = false;    ///< whole groups of codes are scaled by emit/scaled_codes.hpp
  bool encodes_powers = false;  ///< whole groups of floats are encoded by emit/power_codes.hpp
  int pending_vectors = 0;      ///< registers that packing holds between chunks
  /// Vectors of partial results of each accumulator in a row that is folded; 0: none is.
  int fold_vectors = 0;
  bool folds_in_registers = false;  ///< else partial results are on the stack
  bool folds_in_order = false;      ///< each chunk into the vector after that of the one before
  /// Chunks of a block of short rows, as many as a row has elements; 0: rows are folded one by one.
  int block_chunks = 0;

  bool has_row_tables() const { return table_operand >= 0 && table_block == 0; }
};

/// Elements of a tile: what is unpacked and packed at a time where access is bitwise. More would
/// take more stack, fewer more time for where each copy begins.
inline constexpr int tile_elements = 512;

ChunkPlan plan_chunks(const Nest& nest, const NestForm& form, const Target& target);

/// Whether whole chunks of every operand can be reached at once: none is strided or bitwise.
bool has_whole_chunks(const NestForm& form);

/// Whether the operand's sub-byte elements meet chunks in a window (emit/windows.hpp).
bool has_window(ElementType element, Access access);

}  // namespace castor::jit
