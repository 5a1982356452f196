// SPDX-License-Identifier: Apache-2.0
// Encodes 16-bit lanes by their bytes, 64 at a time (AVX-512).
#pragma once

#include <vector>

#include "jit/emit/byte_order.hpp"
#include "jit/emit/encoder.hpp"

namespace castor::jit {

/// Parts two vectors of 16-bit lanes into a vector of their upper and one of their lower bytes, by
/// merges, has a format make codes of those, and puts the codes in order.
class MergedBytesEncoder : public Encoder {
 public:
  void reserve_constants(LaneEmitter& emitter) const final;
  OwnedVector emit_encode(LaneEmitter& emitter, const Xbyak::Xmm& low,
                          const Xbyak::Xmm& high) const final;
  bool makes_nibbles() const final { return code_bits_ == 4; }
  OwnedVector emit_encode_nibbles(LaneEmitter& emitter, const Xbyak::Xmm& low,
                                  const Xbyak::Xmm& high) const final;

 protected:
  /// `constants`: the vectors that `emit_codes` wants in registers. `code_bits`: 8, or 4.
  explicit MergedBytesEncoder(std::vector<std::vector<uint8_t>> constants, int code_bits = 8);
  /// Emits the code of each lane, at the position of its bytes, with anything above `code_bits`.
  /// Both may be overwritten.
  virtual OwnedVector emit_codes(LaneEmitter& emitter, OwnedVector upper,
                                 OwnedVector lower) const = 0;

  static constexpr int vector_bits = 512;
  /// A vector of equal bytes.
  static std::vector<uint8_t> bytes(int value);
  static Xbyak::Zmm register_of(const OwnedVector& vector);
  /// The register of a constant, which is loaded into `fallback` where none keeps it.
  static Xbyak::Zmm constant(LaneEmitter& emitter, const std::vector<uint8_t>& bytes,
                             OwnedVector& fallback);

 private:
  OwnedVector emit_unordered(LaneEmitter& emitter, const Xbyak::Xmm& low,
                             const Xbyak::Xmm& high) const;

  const std::vector<std::vector<uint8_t>> constants_;
  const int code_bits_;
  const ByteOrder order_;
};

}  // namespace castor::jit
