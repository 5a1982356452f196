// SPDX-License-Identifier: Apache-2.0
// What a fold does with two vectors of lanes, and the lanes that it leaves alone.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "jit/emit/assembler.hpp"
#include "jit/lane/program.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// The bits of a lane that changes no other by a fold. (Of float sums that begin as +0: none is
/// ever -0.)
uint64_t fold_identity(Fold fold, int lane_bits);

/// Whether an accumulator of a program tells whether there was a NaN.
bool finds_nans(const LaneProgram& program);

/// What vfixupimmps answers the classes of numbers with, for Fold::any_nan, which takes it in its
/// FoldScratch: in memory it costs three cycles (Golden Cove).
std::vector<uint8_t> nan_responses(int vector_bits);

/// Vectors that a fold of two vectors needs besides them: AVX2 compares 64-bit lanes, and
/// Fold::any_nan takes its responses in the first.
int fold_scratch_vectors(Fold fold, int lane_bits, const Target& target);
using FoldScratch = std::array<Xbyak::Xmm, 3>;

/// to = fold(a, b), lane by lane; under a mask where `to` has one. `to` may be a.
void emit_fold(Assembler& code, const Target& target, Fold fold, int lane_bits,
               const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b,
               const FoldScratch& scratch);

}  // namespace castor::jit
