// SPDX-License-Identifier: Apache-2.0
// The elementwise function behind a convolution, as its kernels apply it to a tile of sums before
// they store it: the tensor of i32 exists nowhere, not even in parts.
//
// A tile's vectors of sums lie along rows of the result: rows of a channel's pixels, or of a
// pixel's channels. Each operand lies along them element by element, or has one element for a row.
// The emitter: epilogue_emitter.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "jit/conv/epilogue_walk.hpp"
#include "jit/kernel/spec.hpp"
#include "jit/lane/hoist.hpp"
#include "jit/lane/program.hpp"
#include "jit/plan/nest.hpp"
#include "jit/target.hpp"

namespace castor::jit {

struct TileOperand {
  ElementType element = ElementType::i32;
  bool repeats = false;       ///< one element for a whole row
  bool same_in_rows = false;  ///< all rows are the same one

  static constexpr auto fields() {
    return std::tuple(field("element", &TileOperand::element),
                      field("repeats", &TileOperand::repeats),
                      field("same_in_rows", &TileOperand::same_in_rows));
  }
};

/// A function that kernels can apply, and all that their code of it depends on.
struct TileEpilogue {
  LaneProgram program;  ///< where each chunk is narrowed by itself
  LaneProgram packed;   ///< the same where stores narrow several at a time
  bool packs = false;   ///< whether `program` is that
  size_t inputs = 0;
  size_t source = 0;  ///< the operand that the sums are
  std::vector<TileOperand> operands;
  bool rows_of_channels = false;  ///< rows are pixels' channels; else channels' pixels

  /// A part of the keys of kernels that apply it.
  static constexpr auto fields() {
    return std::tuple(
        field("program", &TileEpilogue::program), field("packed", &TileEpilogue::packed),
        field("packs", &TileEpilogue::packs), field("inputs", &TileEpilogue::inputs),
        field("source", &TileEpilogue::source), field("operands", &TileEpilogue::operands),
        field("rows_of_channels", &TileEpilogue::rows_of_channels));
  }
};

/// A spec whose kernels may apply an epilogue; its emitter takes null where there is none.
template <class Spec>
concept AppliesEpilogues = requires(const Spec& spec, const Target& target,
                                    const TileEpilogue* epilogue) {
  emit_kernel(spec, target, epilogue);
};

/// Operands beside the sums, each of which has a register for its address.
inline constexpr size_t max_tile_operands = 6;

/// The epilogue of a nest, where kernels can apply it: with AVX-512, lanes of at most 32 bits, few
/// operands of whole bytes, a program that does not go lane by lane and is not long.
std::optional<TileEpilogue> tile_epilogue(const Nest& nest, const EpilogueWalk& walk,
                                          const Target& target);

/// The same as if the function's tensors were dense, and their unknown extents likely ones: for
/// those who look at code without binding it.
std::optional<TileEpilogue> likely_tile_epilogue(const Function& function, const Nest& nest,
                                                 const Target& target);

/// Whether an instruction stores elements of 8 bits to which 32-bit lanes may be packed, several
/// chunks at a time.
bool is_packable(const TileEpilogue& epilogue, const LaneInst& inst);

/// The epilogue where sums follow each other so that results of 8 bits are packed; the same
/// epilogue where it has none.
TileEpilogue packed_epilogue(const TileEpilogue& epilogue);
/// Vectors that wait to be packed at most.
int vectors_of_packs(const TileEpilogue& epilogue);

/// The loop levels of a program's instructions where chunks follow each other for which the
/// operands that `is_same` says are the same: along a row those with one element for it, from row
/// to row those that all rows share.
std::vector<LoopLevel> levels_of_chunks(const TileEpilogue& epilogue, bool TileOperand::*is_same);

/// Vectors that kernels whose own stay in use leave to an epilogue; null: none.
int vectors_for(const TileEpilogue* epilogue);

/// Where an operand of one call lies.
struct EpilogueOperand {
  int64_t data = 0;      ///< address of the first row's first element
  int64_t row_step = 0;  ///< bytes from one row to the next
};

}  // namespace castor::jit
