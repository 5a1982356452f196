// SPDX-License-Identifier: Apache-2.0
// Looks up the codes of integers of nine bits in 16-bit lanes (VBMI).
#pragma once

#include "jit/emit/encoder.hpp"

namespace castor::jit {

/// The lanes' low nine bits are the index: the table's low bytes have the first 256 codes, the
/// upper ones the others. The lanes' bit 15 is the code's sign, where the code has not got it
/// already.
class NineBitEncoder final : public Encoder {
 public:
  explicit NineBitEncoder(const ByteTable& table) : table_(table) {}

  void reserve_constants(LaneEmitter& emitter) const override;
  OwnedVector emit_encode(LaneEmitter& emitter, const Xbyak::Xmm& low,
                          const Xbyak::Xmm& high) const override;

 private:
  const ByteTable& table_;
};

}  // namespace castor::jit
