// SPDX-License-Identifier: Apache-2.0
// Proofs of convolutions' kernels from their code: packers put each byte where the packed layout
// has it, microkernels store the sums of products that their arguments ask for, with the epilogue's
// lane program applied to them. A call's counts and steps are numbers; all elements are inputs.
#pragma once

#include "jit/conv/dense/tile_spec.hpp"
#include "jit/conv/dot/dot_spec.hpp"
#include "jit/conv/pack/pack_input.hpp"
#include "jit/conv/pack/pack_weights.hpp"
#include "jit/conv/sliding/sliding_spec.hpp"
#include "tools/prove/kernel/decision.hpp"

namespace castor::prove {

/// A kernel's code, and what it was made of.
template <class Spec>
struct KernelSubject {
  const Spec& spec;
  const jit::Target target;
  const jit::MachineCode& code;
  const jit::TileEpilogue* epilogue = nullptr;  ///< null: none
};

/// What was proved of one kernel.
struct ConvProof {
  size_t calls = 0;
  size_t iterations = 0;  ///< each stands for any one of a loop
  size_t elements = 0;    ///< stored ones that were compared
  size_t queries = 0;     ///< distinct terms of epilogues that are not the lane program's own
  size_t undecided = 0;   ///< queries that were not decided
};

/// Proves calls of several counts, the least ones and such with more than one of all that code
/// repeats; of packers every count, step and address, and of dense kernels without tile registers
/// every count of k steps and of register tiles. Fails (internal), naming instruction or element,
/// where something is wrong; unsupported, where an instruction or a lane operation has no meaning,
/// or where the epilogue folds results.
Result<ConvProof> prove_kernel(const KernelSubject<jit::PackInput>& kernel, const Decide& decide);
Result<ConvProof> prove_kernel(const KernelSubject<jit::PackWeights>& kernel, const Decide& decide);
Result<ConvProof> prove_kernel(const KernelSubject<jit::DenseTile>& kernel, const Decide& decide);
Result<ConvProof> prove_kernel(const KernelSubject<jit::DepthwiseSpec>& kernel,
                               const Decide& decide);
Result<ConvProof> prove_kernel(const KernelSubject<jit::GroupedNhwcSpec>& kernel,
                               const Decide& decide);
Result<ConvProof> prove_kernel(const KernelSubject<jit::DotTile>& kernel, const Decide& decide);

}  // namespace castor::prove
