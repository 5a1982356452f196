// SPDX-License-Identifier: Apache-2.0
// Rows that are folded, and whose elements are consecutive along another axis: several of them are
// copied to scratch first, where their elements follow one another.
#pragma once

#include "runtime/bind/fold_step.hpp"
#include "runtime/memory/scratch_plan.hpp"

namespace castor::detail {

struct Compiled;

/// The tiles of a pass whose step has its operands: the inputs', then accumulators in the order of
/// the nest. Nothing where no input is stored so. Copies are taken from `plan`; the caller gives
/// them back.
Result<std::optional<FoldTiles>> bind_fold_tiles(const jit::Nest& nest, const jit::FoldSpace& fold,
                                                 const Compiled& compiled, ScratchPlan& plan);

/// The iteration space of one tile.
jit::IterationSpace tile_space(const jit::Nest& nest, const jit::FoldSpace& fold,
                               const FoldTiles& tiles);

}  // namespace castor::detail
