// SPDX-License-Identifier: Apache-2.0
// Bytes of two vectors of 16-bit lanes, joined in one and put in order (AVX-512).
#pragma once

#include <cstdint>
#include <vector>

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

/// Joins upper bytes: those of `low` become the lower bytes, those of `high` the upper ones.
void reserve_joined_bytes(LaneEmitter& emitter);
OwnedVector emit_join_upper_bytes(LaneEmitter& emitter, const Xbyak::Xmm& low,
                                  const Xbyak::Xmm& high);
/// Joins lower bytes in the same way.
OwnedVector emit_join_lower_bytes(LaneEmitter& emitter, const Xbyak::Xmm& low,
                                  const Xbyak::Xmm& high);

/// A permutation of 64 bytes in which four bytes that become a 32-bit lane come from the same 128
/// bits: vpermb, or without VBMI vpshufb and vpermd.
class ByteOrder {
 public:
  /// Byte i comes from source(i).
  explicit ByteOrder(int (*source)(int));

  void reserve_constants(LaneEmitter& emitter) const;
  void emit(LaneEmitter& emitter, const Xbyak::Xmm& bytes) const;

 private:
  std::vector<uint8_t> whole_;
  std::vector<uint8_t> in_parts_;
  std::vector<uint8_t> of_lanes_;
};

}  // namespace castor::jit
