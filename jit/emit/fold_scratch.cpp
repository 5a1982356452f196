// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/fold_scratch.hpp"

namespace castor::jit {

void reserve_for_fold(LaneEmitter& emitter, Fold fold) {
  if (fold == Fold::any_nan) emitter.reserve_vector(nan_responses(emitter.target().vector_bits()));
}

ScratchForFold::ScratchForFold(LaneEmitter& emitter, Fold fold, int lane_bits)
    : owned_(static_cast<size_t>(fold_scratch_vectors(fold, lane_bits, emitter.target()))) {
  if (fold == Fold::any_nan) {
    vectors_[0] = emitter.vector(nan_responses(emitter.target().vector_bits()), owned_[0]);
    return;
  }
  for (size_t i = 0; i < owned_.size(); ++i) {
    owned_[i] = emitter.scratch();
    vectors_[i] = owned_[i].as(128);
  }
}

}  // namespace castor::jit
