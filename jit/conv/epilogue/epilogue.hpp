// SPDX-License-Identifier: Apache-2.0
// Epilogues: the elementwise nest after a convolution takes its i32 result as it is computed, so
// that the tensor of i32 is never made.
//
// A slab of the result is neighbouring channels by neighbouring pixels of one image. Its rows are
// consecutive in memory: pixels of a channel, or channels of a pixel. Each operand has an element
// for each of a row, or one for the whole row. Kernels apply an epilogue to their accumulators
// (TileEpilogue; the emitter: epilogue_emitter.hpp), or the nest's code runs on slabs
// (EpilogueWalk; runtime/conv/convolution_output.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/emit/emit_options.hpp"
#include "jit/kernel/spec.hpp"
#include "jit/lane/program.hpp"
#include "jit/plan/nest.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// Marks the convolutions whose result one elementwise nest alone reads, element by element, and
/// that nest; and moves each of these convolutions directly before it. Where two convolutions
/// feed one nest it is the later one's.
void fuse_convolutions(const Function& function, std::vector<Nest>& nests);

/// What the fusion of a convolution's nest is, in words.
std::string text_of(const Function& function, const Fusion& fusion);

/// Steps of an operand over the result, in elements; 0 where it repeats them.
struct PieceSteps {
  int64_t image = 0;
  int64_t row = 0;      ///< from row to row
  int64_t element = 0;  ///< within a row: 0 or 1
};

/// How an elementwise nest takes a convolution's result slab by slab.
struct EpilogueWalk {
  bool rows_of_channels = false;  ///< else of pixels
  std::vector<PieceSteps> operands;
  /// Rows and their elements: of one element; each call has the extents of its slab.
  IterationSpace space;
  /// Rows of that length are one long row for all operands; -1: of no length.
  int64_t joining_row = -1;
};

/// The walk of an epilogue over a result of these extents, of which none is 0; `strides[k]` are
/// operand k's over them, and those of its source count for nothing. Nothing where an operand is
/// neither consecutive nor repeated along rows, where no step leads from row to row, where rows of
/// sub-byte elements end inside bytes, or where the result is a vector or a scalar.
std::optional<EpilogueWalk> epilogue_walk(const Nest& nest, const Dims& extents,
                                          std::span<const Dims> strides);

/// How an operand's elements follow the rows of a register tile.
struct TileOperand {
  bool repeats = false;       ///< one element for a whole row
  bool same_in_rows = false;  ///< all rows are the same one

  static constexpr auto fields(const auto& list) {
    return list(field("repeats", &TileOperand::repeats),
                field("same_in_rows", &TileOperand::same_in_rows));
  }
};

/// An epilogue that kernels can apply: all that their code of it depends on. Operands are the
/// program's sources, then its sinks, of which those that fold come last (folded_results.hpp).
struct TileEpilogue {
  LaneProgram program;
  size_t source = 0;  ///< the operand that is the accumulators
  std::vector<TileOperand> operands;
  bool rows_of_channels = false;  ///< rows are pixels' channels; else channels' pixels

  size_t inputs() const { return program.sources.size(); }
  /// Sinks that fold.
  size_t folds() const {
    const auto is_folded = [](const MemoryOperand& sink) { return sink.fold != Fold::none; };
    return static_cast<size_t>(std::ranges::count_if(program.sinks, is_folded));
  }
  /// Operands that are in memory element by element: all but those that are folded into.
  size_t in_memory() const { return operands.size() - folds(); }
  ElementType element(size_t operand) const {
    return operand < inputs() ? program.sources[operand].element
                              : program.sinks[operand - inputs()].element;
  }

  /// A part of the keys of kernels that apply it.
  static constexpr auto fields(const auto& list) {
    return list(field("program", &TileEpilogue::program), field("source", &TileEpilogue::source),
                field("operands", &TileEpilogue::operands),
                field("rows_of_channels", &TileEpilogue::rows_of_channels));
  }
};

/// A spec whose kernels may apply an epilogue; its emitter takes null where there is none.
template <class Spec>
concept AppliesEpilogues = requires(const Spec& spec, const Target& target,
                                    const TileEpilogue* epilogue) {
  emit_kernel(spec, target, epilogue);
};

/// Emits the kernel of any spec. `epilogue` is null where there is none, and for specs that apply
/// none.
template <class Spec>
Result<MachineCode> emit_any_kernel(const Spec& spec, const Target& target,
                                    const TileEpilogue* epilogue, const EmitOptions& options = {}) {
  if constexpr (AppliesEpilogues<Spec>) {
    return emit_kernel(spec, target, epilogue, options);
  } else {
    return emit_kernel(spec, target, options);
  }
}

/// Operands beside the accumulators, each of which has a register for its address.
inline constexpr size_t max_tile_operands = 6;

/// Whether kernels can apply the program: it does not go lane by lane, its lanes have at most 32
/// bits, and it is not long.
bool is_applicable(const LaneProgram& program);

/// The epilogue of a nest, where kernels can apply it: with AVX-512, lanes of at most 32 bits, few
/// operands of whole bytes, a program that does not go lane by lane and is not long.
std::optional<TileEpilogue> tile_epilogue(const Nest& nest, const EpilogueWalk& walk,
                                          const Target& target);

/// The same as if the function's tensors were dense, and their unknown extents likely ones: for
/// those who look at code without binding it.
std::optional<TileEpilogue> likely_tile_epilogue(const Function& function, const Nest& nest,
                                                 const Target& target);

/// Whether the epilogue of a convolution whose images can be joined (with_joined_images,
/// problem.hpp) takes them as one, if the function's tensors are dense and their unknown extents
/// likely ones.
bool likely_joins_images(const Function& function, const Nest& nest,
                         const ConvolutionGeometry& joined);

/// Whether an instruction stores elements of 8 bits to which 32-bit lanes may be packed, several
/// vectors at a time.
bool is_packable(const LaneProgram& program, const LaneInst& inst);

/// Vectors that wait at most, where the results of consecutive vectors are packed.
int vectors_of_packs(const TileEpilogue& epilogue);

/// Vectors that kernels whose own stay in use leave to an epilogue; null: none.
int vectors_for(const TileEpilogue* epilogue);

/// Where an operand of one call is; of what is folded the first one alone, at whose address there
/// are 64 bytes for each, to which kernels add their results.
struct EpilogueOperand {
  int64_t data = 0;      ///< address of the first row's first element
  int64_t row_step = 0;  ///< bytes from one row to the next
};

}  // namespace castor::jit
