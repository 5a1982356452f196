// SPDX-License-Identifier: Apache-2.0
// Encodes 16-bit floats as codes of at most 8 bits by a threshold table (VBMI).
#pragma once

#include "jit/emit/encoder.hpp"

namespace castor::jit {

/// Encodes two vectors of 16-bit floats as one vector of bytes.
class ThresholdEncoder final : public Encoder {
 public:
  explicit ThresholdEncoder(const ThresholdTable& table) : table_(table) {}

  void reserve_constants(LaneEmitter& emitter) const override;
  OwnedVector emit_encode(LaneEmitter& emitter, const Xbyak::Xmm& low,
                          const Xbyak::Xmm& high) const override;

 private:
  bool has_own_nans() const { return table_.nan != ThresholdTable::as_magnitude; }
  BytesApart form_of(const LaneEmitter& emitter) const;
  bool payload_in_low_byte() const;
  std::vector<uint8_t> payload_matrix() const;
  OwnedVector emit_bucket_indices(LaneEmitter& emitter, const Xbyak::Xmm& floats,
                                  const OwnedMask& nans) const;
  OwnedVector emit_low_bits(LaneEmitter& emitter, const Xbyak::Xmm& low_bytes) const;
  void emit_add_one_from_threshold(LaneEmitter& emitter, const Xbyak::Xmm& codes,
                                   const Xbyak::Xmm& thresholds, const Xbyak::Xmm& low_bits) const;
  void emit_apply_sign(LaneEmitter& emitter, const Xbyak::Xmm& codes,
                       const Xbyak::Xmm& upper) const;
  void emit_nans(LaneEmitter& emitter, const Xbyak::Xmm& codes, const Xbyak::Xmm& upper,
                 const Xbyak::Xmm& low_bytes, const OwnedMask& nans) const;

  const ThresholdTable& table_;
};

}  // namespace castor::jit
