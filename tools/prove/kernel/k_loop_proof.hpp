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
  const bool is_unpacked_;
};

/// A call's numbers at the loop's begin.
struct KLoopNumbers {
  uint64_t source = 0;   ///< address: the tile's first pixel
  uint64_t weights = 0;  ///< address: those of the iteration
  uint64_t input = 0;    ///< address: of pixels that are packed in the loop
  int64_t input_step = 0;
  uint64_t k_steps_end = 0;  ///< address: after the offsets of the loop's k steps
  int k_steps_left = 0;
};

/// Proves the loop's iterations: `earlier` is at its begin in the first iteration of a tile,
/// `later` in another one. Fails (internal), naming what is wrong.
Status prove_k_steps(const KernelSubject<jit::DenseTile>& kernel, SymbolMachine earlier,
                     SymbolMachine later, const KLoopNumbers& numbers, ConvProof& proof);

}  // namespace castor::prove
