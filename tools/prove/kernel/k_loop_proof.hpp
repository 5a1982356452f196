// SPDX-License-Identifier: Apache-2.0
// The dense microkernel's loop over k steps, for every count: whatever its accumulators hold, one
// iteration adds two k steps' products to them.
#pragma once

#include "tools/prove/kernel/any_arrival.hpp"
#include "tools/prove/kernel/conv_proof.hpp"

namespace castor::prove {

/// The registers of a register tile's accumulators.
class Accumulators {
 public:
  Accumulators(const jit::DenseTile& tile, const jit::Target& target);

  int rows() const { return rows_; }  ///< the window sums' own row included, if there is one
  int vectors() const { return vectors_; }
  int lanes() const { return lanes_; }
  /// The sum of a row at a position along the vectors. Pixels that are unpacked are in an order of
  /// their own until all products are done.
  Term at(const SymbolMachine& machine, int row, int position) const;
  /// Makes all of them inputs of the terms.
  void make_inputs(SymbolMachine& machine) const;

 private:
  const int lanes_;
  const int vectors_;
  const int rows_;
  const bool is_reordered_;
};

/// A call's numbers at the loop's begin.
struct KLoopNumbers {
  Word source;       ///< address: the tile's first pixel
  Word weights;      ///< address: those of the iteration
  Word input;        ///< address: pixels that are packed in the loop; 0: none are
  Word k_steps_end;  ///< address: after the offsets of the loop's k steps
  Word offset;  ///< bytes from there to the next k step's offset: minus 4 for each that is left
};

/// The loop's begin in any iteration of any register tile.
class KLoop {
 public:
  /// `earlier` and `later` are there, in different iterations of different tiles.
  KLoop(const KernelSubject<jit::DenseTile>& kernel, const SymbolMachine& earlier,
        SymbolMachine later, const KLoopNumbers& numbers, int64_t input_step);

  /// Whether a machine is there with these numbers: where a tile begins.
  Status check(const SymbolMachine& machine, const KLoopNumbers& numbers) const;
  /// Proves that an iteration adds two k steps' products to the accumulators, and touches nothing
  /// else. Fails (internal), naming what is wrong.
  Status prove_iterations(ConvProof& proof);

 private:
  using Variables = std::vector<Word>;
  Variables after(Variables variables) const;
  Status prove_iteration(bool is_last);

  const KernelSubject<jit::DenseTile> kernel_;
  const int64_t input_step_;
  const AnyArrival arrival_;
  AnyWords words_;
};

}  // namespace castor::prove
