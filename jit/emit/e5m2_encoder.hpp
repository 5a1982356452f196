// SPDX-License-Identifier: Apache-2.0
// Rounds f16 to f8e5m2, which is its upper half (AVX-512).
#pragma once

#include "jit/emit/byte_order.hpp"
#include "jit/emit/encoder.hpp"

namespace castor::jit {

/// What rounding of the upper bytes of f16 compares with and adds.
namespace e5m2 {
inline constexpr int last_bit = 1;
inline constexpr int magnitude = 0x7f;
inline constexpr int infinity = 0x7c;
inline constexpr int half = 0x80;  ///< a unit's, in the lower byte
}  // namespace e5m2

/// Encodes two vectors of f16, in which no NaN is signalling, as one vector of bytes.
class E5m2Encoder final : public Encoder {
 public:
  E5m2Encoder();

  void reserve_constants(LaneEmitter& emitter) const override;
  OwnedVector emit_encode(LaneEmitter& emitter, const Xbyak::Xmm& low,
                          const Xbyak::Xmm& high) const override;

 private:
  const ByteOrder order_;
};

}  // namespace castor::jit
