// SPDX-License-Identifier: Apache-2.0
// Rounds f16 to f8e5m2, which is its upper half (AVX2).
#pragma once

#include "jit/emit/encoder.hpp"

namespace castor::jit {

/// Encodes two vectors of f16, in which no NaN is signalling, as one vector of bytes.
class E5m2EncoderAvx2 final : public Encoder {
 public:
  void reserve_constants(LaneEmitter& emitter) const override;
  OwnedVector emit_encode(LaneEmitter& emitter, const Xbyak::Xmm& low,
                          const Xbyak::Xmm& high) const override;
};

}  // namespace castor::jit
