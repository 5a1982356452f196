// SPDX-License-Identifier: Apache-2.0
// Rounds f16 and bf16 to f4e2m1 by tables of bytes (VBMI).
#pragma once

#include <cstdint>
#include <vector>

#include "jit/emit/byte_order.hpp"
#include "jit/emit/encoder.hpp"

namespace castor::jit {

/// Encodes two vectors of 16-bit floats as one vector of codes in bytes, to nearest even. What is
/// beyond the largest number, and NaNs, become the largest of that sign.
class F4Encoder final : public Encoder {
 public:
  /// `from`: f16 or bf16.
  explicit F4Encoder(ElementType from);

  void reserve_constants(LaneEmitter& emitter) const override;
  OwnedVector emit_encode(LaneEmitter& emitter, const Xbyak::Xmm& low,
                          const Xbyak::Xmm& high) const override;

 private:
  void emit_f16(LaneEmitter& emitter, const Xbyak::Zmm& codes, const Xbyak::Zmm& upper,
                const Xbyak::Zmm& lower) const;
  void emit_bf16(LaneEmitter& emitter, const Xbyak::Zmm& codes, const Xbyak::Zmm& upper,
                 const Xbyak::Zmm& lower) const;

  const bool from_f16_;
  const ByteOrder order_;
};

}  // namespace castor::jit
