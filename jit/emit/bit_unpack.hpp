// SPDX-License-Identifier: Apache-2.0
// Sub-byte elements on their way from memory: one vector of bytes, each the code of an element.
#pragma once

#include "jit/emit/bit_fields.hpp"
#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

/// Unpacks one element per byte of a vector; upper bits of the bytes are zero.
class BitUnpacker {
 public:
  BitUnpacker(const Target& target, ElementType element);

  /// Reserves the constant vectors.
  void reserve_constants(LaneEmitter& emitter) const;
  /// Unpacks the elements at `from`; reads exactly their bytes.
  void emit_unpack(LaneEmitter& emitter, const Xbyak::Address& from, const Xbyak::Xmm& to) const;
  /// Unpacks the elements of the bytes that `mask` selects (AVX-512).
  void emit_unpack_masked(LaneEmitter& emitter, const Xbyak::Address& from,
                          const Xbyak::Opmask& mask, const Xbyak::Xmm& to) const;

 private:
  struct FieldConstants {
    int value_bit;
    int width;
    std::vector<uint8_t> fields;      ///< VBMI: the bit at which each byte's field begins
    std::vector<uint8_t> even, odd;   ///< else: bytes that hold the even and odd elements' fields
    std::vector<uint8_t> even_scale;  ///< factors that move a field to the top of its 16-bit lane
    std::vector<uint8_t> odd_scale;
  };

  /// Two adjacent elements of one field each, which 16 bits from a byte's begin on hold.
  struct Pairs {
    std::vector<uint8_t> windows;  ///< the bytes of each 16-bit lane's pair
    std::vector<uint8_t> scale;    ///< factors that move pairs to one offset; empty: none is moved
    std::vector<uint8_t> odd_bytes;  ///< all ones in the bytes of odd elements
    int even_bit = 0;                ///< where elements of moved pairs begin
    int odd_bit = 0;
  };

  bool has_byte_permute() const { return target_.supports(Feature::avx512_vbmi); }
  bool are_nibbles() const;
  FieldConstants constants_of(int value_bit, int width) const;
  Pairs pairs() const;
  int part_origin(int part) const;
  int position_of(const BitField& field, int part, int index) const;
  void emit_unpack_nibbles(LaneEmitter& emitter, const Xbyak::Address& from,
                           const Xbyak::Xmm& to) const;
  void emit_load(LaneEmitter& emitter, const Xbyak::Address& from, const Xbyak::Xmm& to) const;
  void emit_load_both_halves(LaneEmitter& emitter, const Xbyak::Address& from,
                             const Xbyak::Xmm& to) const;
  void emit_spread(LaneEmitter& emitter, const Xbyak::Xmm& bytes) const;
  void emit_extract_pairs(LaneEmitter& emitter, const Xbyak::Xmm& bytes) const;
  void emit_extract(LaneEmitter& emitter, const FieldConstants& field, const Xbyak::Xmm& bytes,
                    const Xbyak::Xmm& to) const;
  void emit_extract_fields_vbmi(LaneEmitter& emitter, const Xbyak::Xmm& bytes) const;

  const Target& target_;
  ElementType element_;
  int vector_bits_;
  int bytes_;                           ///< in memory, of one vector of elements
  std::vector<FieldConstants> fields_;  ///< but of pairs
  std::optional<Pairs> pairs_;          ///< elements of one field, without VBMI
  std::vector<uint8_t> arrangement_;    ///< AVX-512: the source of each byte, or 16-bit lane
  std::vector<uint8_t> value_mask_;     ///< but of split layouts without VBMI
};

}  // namespace castor::jit
