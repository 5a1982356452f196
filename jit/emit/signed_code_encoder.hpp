// SPDX-License-Identifier: Apache-2.0
// Takes the codes of small floats out of the lanes that Narrowing::signed_code describes (AVX-512).
#pragma once

#include "ir/types/element_type.hpp"
#include "jit/emit/byte_order.hpp"
#include "jit/emit/encoder.hpp"

namespace castor::jit {

/// `emit_encode` gets lanes that vpackssdw has joined two vectors at a time, and overwrites them;
/// `emit_encode_one` gets the 32-bit lanes.
class SignedCodeEncoder final : public Encoder {
 public:
  explicit SignedCodeEncoder(ElementType element);

  void reserve_constants(LaneEmitter& emitter) const override;
  OwnedVector emit_encode(LaneEmitter& emitter, const Xbyak::Xmm& low,
                          const Xbyak::Xmm& high) const override;
  OwnedVector emit_encode_one(LaneEmitter& emitter, const Xbyak::Xmm& lanes) const override;

 private:
  void emit_put_sign_above_code(LaneEmitter& emitter, const Xbyak::Xmm& lanes) const;

  const ByteOrder order_;
  const bool has_one_zero_;  ///< fnuz: zeros, and the NaN, whose code ends in zeros, have no sign
  const int code_bits_;      ///< below the sign
  const int first_bit_;      ///< where an i16 has the code
};

}  // namespace castor::jit
