// SPDX-License-Identifier: Apache-2.0
// Encodes f16 and bf16 as nf4 by tables of bytes (VBMI).
#pragma once

#include "ir/types/element_type.hpp"
#include "jit/emit/merged_bytes_encoder.hpp"

namespace castor::jit {

/// NaNs, which are above no threshold, become the first code, that of -1.
class Nf4Encoder final : public MergedBytesEncoder {
 public:
  /// `from`: f16 or bf16.
  explicit Nf4Encoder(ElementType from);

 private:
  OwnedVector emit_codes(LaneEmitter& emitter, OwnedVector upper, OwnedVector lower) const override;
  OwnedVector emit_f16_buckets(LaneEmitter& emitter, const Xbyak::Zmm& upper,
                               const Xbyak::Zmm& lower, const Xbyak::Opmask& is_nan) const;
  OwnedVector emit_bf16_buckets(LaneEmitter& emitter, const Xbyak::Zmm& upper,
                                const Xbyak::Zmm& lower, const Xbyak::Opmask& is_nan) const;

  const bool from_f16_;
};

}  // namespace castor::jit
