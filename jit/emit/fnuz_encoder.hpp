// SPDX-License-Identifier: Apache-2.0
// Codes of fnuz formats, whose zero has no sign (AVX-512).
#pragma once

#include "ir/types/element_type.hpp"
#include "jit/emit/merged_bytes_encoder.hpp"

namespace castor::jit {

/// Puts the signs to codes of magnitudes (Narrowing::fnuz_code).
class FnuzEncoder final : public MergedBytesEncoder {
 public:
  FnuzEncoder();

 private:
  OwnedVector emit_codes(LaneEmitter& emitter, OwnedVector upper, OwnedVector lower) const override;
};

/// Rounds any f16 to f8e5m2fnuz, whose exponent field is one more than f16's.
class E5m2FnuzEncoder final : public MergedBytesEncoder {
 public:
  E5m2FnuzEncoder();

 private:
  OwnedVector emit_codes(LaneEmitter& emitter, OwnedVector upper, OwnedVector lower) const override;
};

/// Rounds bf16 to f8e4m3fnuz or f8e5m2fnuz by tables (VBMI). Overflow and NaNs become the NaN.
class Bf16FnuzEncoder final : public MergedBytesEncoder {
 public:
  explicit Bf16FnuzEncoder(ElementType to);

 private:
  OwnedVector emit_codes(LaneEmitter& emitter, OwnedVector upper, OwnedVector lower) const override;

  const ElementType to_;
};

}  // namespace castor::jit
