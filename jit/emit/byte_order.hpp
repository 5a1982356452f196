// SPDX-License-Identifier: Apache-2.0
// Bytes of a vector, put in order (AVX-512).
#pragma once

#include <cstdint>
#include <vector>

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

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
