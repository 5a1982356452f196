// SPDX-License-Identifier: Apache-2.0
// Sub-byte elements on their way to memory: from one vector of bytes to their bits.
#pragma once

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

/// Packs one element per byte of a vector: the low bits of the byte.
class BitPacker {
 public:
  BitPacker(const Target& target, ElementType element);

  /// Reserves the constant vectors.
  void reserve_constants(LaneEmitter& emitter) const;
  /// Packs the elements; their bytes are at the bottom of the same register afterwards.
  void emit_pack(LaneEmitter& emitter, const Xbyak::Xmm& codes) const;
  /// Packs the elements and stores exactly their bytes; overwrites the register. `clean`: the upper
  /// bits of the codes are zero. `streaming`: past the caches, if `to` is aligned.
  void emit_store(LaneEmitter& emitter, const Xbyak::Address& to, const Xbyak::Xmm& codes,
                  bool clean, bool streaming) const;

 private:
  void emit_pack_clean(LaneEmitter& emitter, const Xbyak::Xmm& codes) const;
  void emit_store_packed(LaneEmitter& emitter, const Xbyak::Address& to,
                         const Xbyak::Xmm& packed) const;
  void emit_store_as_mask(LaneEmitter& emitter, const Xbyak::Address& to,
                          const Xbyak::Xmm& codes) const;
  bool stores_as_mask() const { return bits_of(element_) == 1; }
  void emit_gather_bits(LaneEmitter& emitter, const Xbyak::Xmm& codes, int width,
                        bool msb_first) const;
  void emit_gather_split(LaneEmitter& emitter, const Xbyak::Xmm& codes) const;
  void emit_compress(LaneEmitter& emitter, const Xbyak::Xmm& units) const;
  void emit_join_halves(LaneEmitter& emitter, const Xbyak::Xmm& halves) const;
  std::vector<uint8_t> weights(int width, bool msb_first, int element_bits) const;
  std::vector<uint8_t> low_bits(int width) const;

  const Target& target_;
  ElementType element_;
  int vector_bits_;
  int bytes_;                   ///< in memory, of one vector of elements
  std::vector<uint8_t> picks_;  ///< the source of each packed byte
  std::vector<uint8_t> joins_;  ///< the source of each 16-bit lane after that, without vpermb
};

}  // namespace castor::jit
