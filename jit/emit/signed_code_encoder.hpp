// SPDX-License-Identifier: Apache-2.0
// Takes the codes of small floats out of the lanes that Narrowing::signed_code describes (AVX-512).
#pragma once

#include "ir/types/element_type.hpp"
#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

/// Makes bytes with codes from 32-bit lanes that hold signed codes.
class SignedCodeEncoder {
 public:
  explicit SignedCodeEncoder(ElementType element);

  /// Reserves the constant vectors.
  void reserve_constants(LaneEmitter& emitter) const;
  /// Emits the codes of four vectors of lanes, which vpackssdw has joined two by two and which are
  /// overwritten.
  OwnedVector emit_encode(LaneEmitter& emitter, const Xbyak::Xmm& low,
                          const Xbyak::Xmm& high) const;
  /// Emits the codes of one vector of lanes of any width, to its low bytes.
  OwnedVector emit_encode_one(LaneEmitter& emitter, const Xbyak::Xmm& lanes) const;

 private:
  void emit_put_sign_above_code(LaneEmitter& emitter, const Xbyak::Xmm& lanes) const;
  OwnedVector emit_join_upper_bytes(LaneEmitter& emitter, const Xbyak::Xmm& low,
                                    const Xbyak::Xmm& high) const;
  void emit_order(LaneEmitter& emitter, const Xbyak::Xmm& bytes) const;

  const bool has_one_zero_;  ///< fnuz: zeros, and the NaN, whose code ends in zeros, have no sign
  const int code_bits_;      ///< below the sign
  const int first_bit_;      ///< of the code in an i16
};

}  // namespace castor::jit
