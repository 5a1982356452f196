// SPDX-License-Identifier: Apache-2.0
// How many elements the code of a nest does at a time, and how far its main loop is unrolled.
#pragma once

#include <variant>

#include "jit/emit/bytes_apart.hpp"
#include "jit/plan/nest.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// Codes of an operand index a table that is made for each row, or each block of a row
/// (emit/row_table.hpp).
struct CodeTables {
  size_t operand = 0;
  int block = 0;  ///< elements that share a table; 0: all of a row
};
/// Whole groups of codes are scaled (emit/scaled_codes.hpp).
struct CodeScaling {};
/// Whole groups of 4-bit codes are scaled (emit/scaled_nibbles.hpp).
struct NibbleScaling {};
/// Whole groups of floats are encoded (emit/power_codes.hpp).
struct PowerCoding {};
/// Whole groups of floats are divided and encoded (emit/quotient_codes.hpp).
struct QuotientCoding {};

/// What the emitter decides about a nest before it emits: visible in `castor dump --stage nest`.
struct ChunkPlan {
  int lanes = 0;               ///< elements of a chunk: the widest lane type fills a vector
  int chunks = 0;              ///< chunks of one iteration of the main loop
  bool joins_halves = false;   ///< what has 64-bit lanes is done for halves (jit/lane/halves.hpp)
  bool packs = false;          ///< narrow elements are collected to full vectors
  bool has_main_loop = false;  ///< false where an operand is strided: chunk by chunk
  bool columns_first = false;  ///< chunks of columns are done as one, all rows before the next
  bool has_windows = false;    ///< sub-byte operands go through windows, in groups of chunks
  bool has_tiles = false;      ///< they go through windows of tile_elements
  /// What does most elements instead of the lane program, if anything does.
  std::variant<std::monostate, CodeTables, CodeScaling, NibbleScaling, PowerCoding, QuotientCoding>
      instead;
  BytesApart bytes_apart = BytesApart::by_permutation;  ///< how 16-bit lanes are encoded
  int pending_vectors = 0;  ///< registers that packing holds between chunks
  /// Vectors of partial results of each accumulator in a row that is folded; 0: none is.
  int fold_vectors = 0;
  bool folds_in_registers = false;  ///< else partial results are on the stack
  bool folds_in_order = false;      ///< each chunk into the vector after that of the one before
  /// Chunks of a block of short rows, as many as a row has elements; 0: rows are folded one by one.
  int block_chunks = 0;

  const CodeTables* tables() const { return std::get_if<CodeTables>(&instead); }
  bool has_row_tables() const { return tables() != nullptr && tables()->block == 0; }
  bool scales_codes() const { return std::holds_alternative<CodeScaling>(instead); }
  bool scales_nibbles() const { return std::holds_alternative<NibbleScaling>(instead); }
  bool encodes_powers() const { return std::holds_alternative<PowerCoding>(instead); }
  bool encodes_quotients() const { return std::holds_alternative<QuotientCoding>(instead); }
  /// Whether whole blocks are done from a row's begin on, by code that streams where that is
  /// aligned.
  bool does_blocks() const {
    return scales_codes() || scales_nibbles() || encodes_powers() || encodes_quotients();
  }
};

/// Elements of a tile: what is unpacked and packed at a time where access is bitwise. More would
/// take more stack, fewer more time for where each copy begins.
inline constexpr int tile_elements = 512;

ChunkPlan plan_chunks(const Nest& nest, const NestForm& form, const Target& target);

/// The form of a nest's code with streaming stores. Where that does the elements before the
/// alignment first, a period may begin anywhere after them.
NestForm streaming_form(const Nest& nest, NestForm form, const Target& target);

/// Whether whole chunks of every operand can be reached at once: none is strided or bitwise.
bool has_whole_chunks(const NestForm& form);

/// Whether the operand's sub-byte elements meet chunks in a window (emit/windows.hpp).
bool has_window(ElementType element, Access access);

}  // namespace castor::jit
