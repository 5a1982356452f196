// SPDX-License-Identifier: Apache-2.0
// Rounds f16 and bf16 to f4e2m1 by tables of bytes (VBMI).
#pragma once

#include "ir/types/element_type.hpp"
#include "jit/emit/merged_bytes_encoder.hpp"

namespace castor::jit {

/// To nearest even. What is beyond the largest number, and NaNs, become the largest of that sign.
class F4Encoder final : public MergedBytesEncoder {
 public:
  /// `from`: f16 or bf16.
  explicit F4Encoder(ElementType from);

 private:
  OwnedVector emit_codes(LaneEmitter& emitter, OwnedVector upper, OwnedVector lower) const override;

  const bool from_f16_;
};

}  // namespace castor::jit
