// SPDX-License-Identifier: Apache-2.0
// Encodes 16-bit floats as codes of at most 8 bits by a class table (VBMI, GFNI).
#pragma once

#include "jit/emit/encoder.hpp"

namespace castor::jit {

/// Encodes two vectors of 16-bit floats as one vector of bytes: 9 vector operations for 64 floats
/// where negative ones become 0, else 10.
class ClassEncoder final : public Encoder {
 public:
  explicit ClassEncoder(const ClassTable& table) : table_(table) {}

  void reserve_constants(LaneEmitter& emitter) const override;
  OwnedVector emit_encode(LaneEmitter& emitter, const Xbyak::Xmm& low,
                          const Xbyak::Xmm& high) const override;

 private:
  bool has_sign() const { return table_.sign_bit != 0; }
  std::vector<uint8_t> low_bits_matrix() const;
  std::vector<uint8_t> sign_matrix() const;
  std::vector<uint8_t> last_number_byte() const;
  void emit_index(LaneEmitter& emitter, const Xbyak::Xmm& index, const Xbyak::Xmm& lower,
                  const Xbyak::Xmm& upper) const;
  void emit_nans(LaneEmitter& emitter, const Xbyak::Opmask& nans, const Xbyak::Xmm& classes,
                 const Xbyak::Xmm& lower) const;
  void emit_numbers_from_zero(LaneEmitter& emitter, const Xbyak::Opmask& to, const Xbyak::Xmm& low,
                              const Xbyak::Xmm& high) const;

  const ClassTable& table_;
};

}  // namespace castor::jit
