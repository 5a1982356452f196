// SPDX-License-Identifier: Apache-2.0
// What the folds of a lane program's sinks take besides two vectors.
#pragma once

#include <vector>

#include "jit/emit/fold_ops.hpp"
#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

/// Keeps the constant that a sink's fold takes, if it takes one, in a register across the loop.
void reserve_for_fold(LaneEmitter& emitter, Fold fold);

/// The vectors that one fold takes, until it dies.
class ScratchForFold {
 public:
  ScratchForFold(LaneEmitter& emitter, Fold fold, int lane_bits);
  const FoldScratch& vectors() const { return vectors_; }

 private:
  std::vector<OwnedVector> owned_;
  FoldScratch vectors_ = FoldScratch();
};

}  // namespace castor::jit
