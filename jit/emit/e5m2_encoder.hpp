// SPDX-License-Identifier: Apache-2.0
// Rounds f16 to f8e5m2, which is its upper half (AVX-512).
#pragma once

#include "jit/emit/merged_bytes_encoder.hpp"

namespace castor::jit {

/// What rounding of the upper bytes of f16 compares with and adds.
namespace e5m2 {
inline constexpr int last_bit = 1;
inline constexpr int magnitude = 0x7f;
inline constexpr int infinity = 0x7c;
inline constexpr int half = 0x80;  ///< a unit's, in the lower byte
}  // namespace e5m2

/// Takes f16 in which no NaN is signalling.
class E5m2Encoder final : public MergedBytesEncoder {
 public:
  E5m2Encoder();

 private:
  OwnedVector emit_codes(LaneEmitter& emitter, OwnedVector upper, OwnedVector lower) const override;
};

}  // namespace castor::jit
