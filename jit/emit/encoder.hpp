// SPDX-License-Identifier: Apache-2.0
// How a store makes codes of at most eight bits of lanes that hold something else.
#pragma once

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

/// Encodes lanes as bytes: which lanes, derived classes say.
class Encoder {
 public:
  virtual ~Encoder() = default;
  /// Reserves the constant vectors.
  virtual void reserve_constants(LaneEmitter& emitter) const = 0;
  /// Emits the encoding of two vectors, `low`'s lanes first. They may be overwritten.
  virtual OwnedVector emit_encode(LaneEmitter& emitter, const Xbyak::Xmm& low,
                                  const Xbyak::Xmm& high) const = 0;
  /// Whether `emit_encode_nibbles` packs codes of four bits, the first one in a byte's lower half.
  virtual bool makes_nibbles() const { return false; }
  /// The same as `emit_encode` with packed codes, in the result's lower half; overridden with
  /// `makes_nibbles`.
  virtual OwnedVector emit_encode_nibbles(LaneEmitter&, const Xbyak::Xmm&,
                                          const Xbyak::Xmm&) const {
    throw Xbyak::Error(Xbyak::ERR_INTERNAL);
  }
  /// Emits the encoding of one vector or a part of one, to the result's low bytes; it keeps its
  /// contents. Overridden where `emit_encode` overwrites its operands.
  virtual OwnedVector emit_encode_one(LaneEmitter& emitter, const Xbyak::Xmm& lanes) const {
    return emit_encode(emitter, lanes, lanes);
  }
};

}  // namespace castor::jit
