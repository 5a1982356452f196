// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/bit_unpack.hpp"

#include <algorithm>

#include "ir/types/storage.hpp"
#include "jit/emit/bit_fields.hpp"
#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

constexpr uint8_t no_byte = 0x80;  // vpshufb: zero

}  // namespace

BitUnpacker::BitUnpacker(const Target& target, ElementType element)
    : target_(target),
      element_(element),
      vector_bits_(target.vector_bits()),
      bytes_(codes_per_vector(vector_bits_) * bits_of(element) / 8) {
  const int bits = bits_of(element);
  if (are_nibbles()) {
    value_mask_ = vector_constant<uint8_t>(vector_bits_, [](int) { return 0x0f; });
    return;
  }
  const bool is_whole = info(element).order != StorageOrder::split;
  if (is_whole && !has_byte_permute()) {
    pairs_ = pairs();
  } else {
    for (const BitField& field : bit_fields(element)) {
      fields_.push_back(constants_of(field.value_bit, field.width));
    }
  }
  value_mask_ = vector_constant<uint8_t>(vector_bits_, [&](int) { return (1 << bits) - 1; });
  if (has_byte_permute()) {
    // The bytes of each group of eight elements go to a 64-bit lane of their own.
    arrangement_ = vector_constant<uint8_t>(
        vector_bits_, [&](int i) { return i % 8 < bits ? i / 8 * bits + i % 8 : 0; });
  } else if (target.has_avx512()) {
    // The bytes of sixteen elements go to a 128-bit part of their own.
    arrangement_ = vector_constant<uint16_t>(
        vector_bits_, [&](int i) { return i % 8 < bits ? i / 8 * bits + i % 8 : 0; });
  }
}

/// Whether each byte becomes a 16-bit lane of its two elements (AVX2).
bool BitUnpacker::are_nibbles() const {
  return bits_of(element_) == 4 && info(element_).order == StorageOrder::lsb_first &&
         !target_.has_avx512();
}

/// Where the bytes of a part's sixteen elements begin within the part.
int BitUnpacker::part_origin(int part) const {
  if (target_.has_avx512()) return 0;
  // Without a permutation across parts, both hold the same bytes (see emit_load_both_halves).
  const int own = part * 2 * bits_of(element_);
  return bytes_ > 16 && part == 1 ? own - (bytes_ - 16) : own;
}

/// The bit, counted from the first one of its part, at which element `index` of sixteen has the
/// field.
int BitUnpacker::position_of(const BitField& field, int part, int index) const {
  return part_origin(part) * 8 + index / 8 * bits_of(element_) * 8 +
         field_position(element_, field, index % 8);
}

BitUnpacker::FieldConstants BitUnpacker::constants_of(int value_bit, int width) const {
  const BitField field = {value_bit, width};
  FieldConstants constants = {value_bit, width, {}, {}, {}, {}, {}};
  if (has_byte_permute()) {
    // Reading begins `value_bit` bits before the field, which then has its position in the value.
    constants.fields = vector_constant<uint8_t>(vector_bits_, [&](int i) {
      return (field_position(element_, field, i % 8) - value_bit) & 63;
    });
    return constants;
  }
  const auto position = [&](int part, int index) { return position_of(field, part, index); };
  const auto control = [&](int parity) {
    return vector_constant<uint8_t>(vector_bits_, [&](int i) -> int {
      const int at = position(i / 16, i % 16 / 2 * 2 + parity);
      const bool second = i % 2 == 1;
      if (second && at % 8 + width <= 8) return no_byte;
      return at / 8 + (second ? 1 : 0);
    });
  };
  const auto scale = [&](int parity) {
    return vector_constant<uint16_t>(vector_bits_, [&](int i) {
      const int at = position(i / 8, i % 8 * 2 + parity);
      return 1 << (16 - width - at % 8);
    });
  };
  constants.even = control(0);
  constants.odd = control(1);
  constants.even_scale = scale(0);
  constants.odd_scale = scale(1);
  return constants;
}

BitUnpacker::Pairs BitUnpacker::pairs() const {
  const int bits = bits_of(element_);
  const BitField field = {0, bits};
  const auto position = [&](int part, int index) { return position_of(field, part, index); };
  const auto begin = [&](int lane) {
    const int part = lane / 8;
    const int first = lane % 8 * 2;
    return std::min(position(part, first), position(part, first + 1));
  };
  int offset = 0;
  for (int lane = 0; lane < vector_bits_ / 16; ++lane) offset = std::max(offset, begin(lane) % 8);
  Pairs pairs;
  pairs.windows = vector_constant<uint8_t>(vector_bits_, [&](int i) -> int {
    const int at = begin(i / 2);
    if (i % 2 == 0) return at / 8;
    return at % 8 + 2 * bits <= 8 ? no_byte : at / 8 + 1;
  });
  const auto factor = [&](int lane) { return 1 << (offset - begin(lane) % 8); };
  for (int lane = 0; lane < vector_bits_ / 16; ++lane) {
    if (factor(lane) != 1) pairs.scale = vector_constant<uint16_t>(vector_bits_, factor);
  }
  pairs.odd_bytes =
      vector_constant<uint8_t>(vector_bits_, [](int i) { return i % 2 == 1 ? 0xff : 0; });
  const bool is_even_first = position(0, 0) < position(0, 1);
  pairs.even_bit = offset + (is_even_first ? 0 : bits);
  pairs.odd_bit = offset + (is_even_first ? bits : 0);
  return pairs;
}

void BitUnpacker::reserve_constants(LaneEmitter& emitter) const {
  if (!arrangement_.empty()) emitter.reserve_vector(arrangement_);
  for (const FieldConstants& field : fields_) {
    for (const auto* bytes :
         {&field.fields, &field.even, &field.odd, &field.even_scale, &field.odd_scale}) {
      if (!bytes->empty()) emitter.reserve_vector(*bytes);
    }
  }
  if (pairs_) {
    for (const auto* bytes : {&pairs_->windows, &pairs_->scale, &pairs_->odd_bytes}) {
      if (!bytes->empty()) emitter.reserve_vector(*bytes);
    }
  }
  if (has_byte_permute() || are_nibbles() || pairs_) emitter.reserve_vector(value_mask_);
  if (target_.has_avx512() && mask_of_packed(bytes_) != 0) {
    emitter.reserve_mask(mask_of_packed(bytes_));
  }
}

void BitUnpacker::emit_unpack(LaneEmitter& emitter, const Xbyak::Address& from,
                              const Xmm& to) const {
  if (are_nibbles()) return emit_unpack_nibbles(emitter, from, to);
  emit_load(emitter, from, to);
  emit_spread(emitter, to);
}

/// The upper half of each byte is moved to the next one, which is zero.
void BitUnpacker::emit_unpack_nibbles(LaneEmitter& emitter, const Xbyak::Address& from,
                                      const Xmm& to) const {
  Assembler& code = emitter.code();
  const OwnedVector other = emitter.scratch();
  const Xmm moved = other.as(vector_bits_);
  const Xmm whole = ymm(to);
  code.vpmovzxbw(whole, from);
  code.vpsllw(moved, whole, 4);
  code.vpor(whole, whole, moved);
  code.vpand(whole, whole, emitter.last_vector(value_mask_));
}

void BitUnpacker::emit_unpack_masked(LaneEmitter& emitter, const Xbyak::Address& from,
                                     const Opmask& mask, const Xmm& to) const {
  emitter.code().vmovdqu8(to | mask | Xbyak::util::T_z, from);
  emit_spread(emitter, to);
}

/// Loads the bytes to the bottom of the register; on AVX2 to both halves.
void BitUnpacker::emit_load(LaneEmitter& emitter, const Xbyak::Address& from, const Xmm& to) const {
  Assembler& code = emitter.code();
  if (!target_.has_avx512()) return emit_load_both_halves(emitter, from, to);
  switch (bytes_) {
    case 8: return code.vmovq(vector_register(to.getIdx(), 128), from);
    case 16:
    case 32: return code.vmovups(vector_register(to.getIdx(), bytes_ * 8), from);
    default: break;
  }
  std::optional<OwnedMask> fallback;
  const Opmask mask = emitter.mask(mask_of_packed(bytes_), fallback);
  code.vmovdqu8(to | mask | Xbyak::util::T_z, from);
}

void BitUnpacker::emit_load_both_halves(LaneEmitter& emitter, const Xbyak::Address& from,
                                        const Xmm& to) const {
  Assembler& code = emitter.code();
  const Xbyak::Ymm whole(to.getIdx());
  const Xmm low = vector_register(to.getIdx(), 128);
  const auto at = [&](int bytes) { return code.ptr[from.getRegExp() + bytes]; };
  switch (bytes_) {
    case 4: return code.vpbroadcastd(whole, from);
    case 8: return code.vpbroadcastq(whole, from);
    case 16: return code.vbroadcasti128(whole, from);
    case 12:
      code.vmovq(low, from);
      code.vpinsrd(low, low, at(8), 2);
      return code.vinserti128(whole, whole, low, 1);
    default:  // 24: the first and the last 16 bytes
      code.vmovups(low, from);
      return code.vinserti128(whole, whole, at(8), 1);
  }
}

void BitUnpacker::emit_spread(LaneEmitter& emitter, const Xmm& bytes) const {
  Assembler& code = emitter.code();
  if (target_.has_avx512()) {
    OwnedVector fallback;
    const Xmm order = emitter.vector(arrangement_, fallback);
    has_byte_permute() ? code.vpermb(bytes, order, bytes) : code.vpermw(bytes, order, bytes);
  }
  if (has_byte_permute()) return emit_extract_fields_vbmi(emitter, bytes);
  if (pairs_) return emit_extract_pairs(emitter, bytes);
  const OwnedVector high = emitter.scratch();
  const Xmm upper = high.as(vector_bits_);
  emit_extract(emitter, fields_[1], bytes, upper);
  code.vpsllw(upper, upper, static_cast<uint8_t>(fields_[1].value_bit));
  emit_extract(emitter, fields_[0], bytes, bytes);
  emit_or(emitter, bytes, bytes, upper);
}

/// Each pair is in a 16-bit lane, at the same offset in all of them; from there its elements move
/// to the lane's bytes.
void BitUnpacker::emit_extract_pairs(LaneEmitter& emitter, const Xmm& bytes) const {
  Assembler& code = emitter.code();
  const OwnedVector other = emitter.scratch();
  const Xmm odd = other.as(vector_bits_);
  code.vpshufb(bytes, bytes, emitter.last_vector(pairs_->windows));
  if (!pairs_->scale.empty()) code.vpmullw(bytes, bytes, emitter.last_vector(pairs_->scale));
  const int shift = pairs_->odd_bit - 8;
  if (shift <= 0) {
    code.vpsllw(odd, bytes, static_cast<uint8_t>(-shift));
  } else {
    code.vpsrlw(odd, bytes, static_cast<uint8_t>(shift));
  }
  if (pairs_->even_bit != 0) {
    code.vpsrlw(bytes, bytes, static_cast<uint8_t>(pairs_->even_bit));
  }
  if (target_.has_avx512()) {
    constexpr uint8_t b_where_c_else_a = 0xd8;
    code.vpternlogd(bytes, odd, emitter.last_vector(pairs_->odd_bytes), b_where_c_else_a);
  } else {
    OwnedVector fallback;
    code.vpblendvb(bytes, bytes, odd, emitter.vector(pairs_->odd_bytes, fallback));
  }
  emit_and(emitter, bytes, bytes, emitter.last_vector(value_mask_));
}

/// Bytes of one field: even elements in the low bytes of 16-bit lanes, odd ones in the high bytes.
void BitUnpacker::emit_extract(LaneEmitter& emitter, const FieldConstants& field, const Xmm& bytes,
                               const Xmm& to) const {
  Assembler& code = emitter.code();
  const OwnedVector other = emitter.scratch();
  const Xmm odd = other.as(vector_bits_);
  const auto emit_field = [&](const Xmm& result, const std::vector<uint8_t>& control,
                              const std::vector<uint8_t>& scale) {
    code.vpshufb(result, bytes, emitter.last_vector(control));
    code.vpmullw(result, result, emitter.last_vector(scale));
  };
  emit_field(odd, field.odd, field.odd_scale);
  emit_field(to, field.even, field.even_scale);
  code.vpsrlw(to, to, static_cast<uint8_t>(16 - field.width));
  code.vpsrlw(odd, odd, static_cast<uint8_t>(16 - field.width));
  code.vpsllw(odd, odd, 8);
  emit_or(emitter, to, to, odd);
}

/// vpmultishiftqb: eight bits from any bit on for each byte.
void BitUnpacker::emit_extract_fields_vbmi(LaneEmitter& emitter, const Xmm& bytes) const {
  Assembler& code = emitter.code();
  constexpr uint8_t a_where_c_else_b = 0xe4;
  OwnedVector upper;
  if (fields_.size() == 2) {
    upper = emitter.scratch();
    OwnedVector fallback;
    const Xmm begins = emitter.vector(fields_[1].fields, fallback);
    code.vpmultishiftqb(upper.as(vector_bits_), begins, bytes);
  }
  {
    OwnedVector fallback;
    code.vpmultishiftqb(bytes, emitter.vector(fields_[0].fields, fallback), bytes);
  }
  if (fields_.size() == 2) {
    const auto low_bits =
        vector_constant<uint8_t>(vector_bits_, [&](int) { return (1 << fields_[0].width) - 1; });
    code.vpternlogd(bytes, upper.as(vector_bits_), emitter.last_vector(low_bits), a_where_c_else_b);
  }
  emit_and(emitter, bytes, bytes, emitter.last_vector(value_mask_));
}

}  // namespace castor::jit
