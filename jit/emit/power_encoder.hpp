// SPDX-License-Identifier: Apache-2.0
// Rounds bf16 to f8e8m0, which is its exponent (AVX-512).
#pragma once

#include "jit/emit/merged_bytes_encoder.hpp"

namespace castor::jit {

/// To nearest even: 20 vector operations for 64 floats. Negative numbers become 0, infinity the
/// largest power, NaNs NaN.
class PowerEncoder final : public MergedBytesEncoder {
 public:
  PowerEncoder();

 private:
  OwnedVector emit_codes(LaneEmitter& emitter, OwnedVector upper, OwnedVector lower) const override;
};

}  // namespace castor::jit
