// SPDX-License-Identifier: Apache-2.0
// Rounds bf16 to f8e8m0, which is its exponent (AVX-512).
#pragma once

#include "jit/emit/byte_order.hpp"
#include "jit/emit/encoder.hpp"

namespace castor::jit {

/// Encodes two vectors of bf16 as one vector of exponents, rounded to nearest even: 20 vector
/// operations for 64 floats. Negative numbers become 0, infinity the largest power, NaNs NaN.
class PowerEncoder final : public Encoder {
 public:
  PowerEncoder();

  void reserve_constants(LaneEmitter& emitter) const override;
  OwnedVector emit_encode(LaneEmitter& emitter, const Xbyak::Xmm& low,
                          const Xbyak::Xmm& high) const override;

 private:
  const ByteOrder order_;
};

}  // namespace castor::jit
