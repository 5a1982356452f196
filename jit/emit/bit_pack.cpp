// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/bit_pack.hpp"

#include "jit/emit/bit_fields.hpp"
#include "jit/emit/frame.hpp"
#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {

namespace {

/// Elements of 4 bits are joined in 16-bit lanes; other widths need wider lanes until they fill
/// whole bytes.
bool needs_32_bit_lanes(int width) { return width != 4; }
bool needs_64_bit_lanes(int width) { return width % 2 == 1; }

/// After the bits of a group of eight elements are gathered: the bytes of its 64-bit lane that hold
/// them, in the order of memory.
std::vector<int> bytes_of_group(ElementType element) {
  const bool split = info(element).order == StorageOrder::split;
  switch (bits_of(element)) {
    case 1: return {0};
    case 2: return {0, 4};
    case 3: return split ? std::vector<int>{0, 4, 1} : std::vector<int>{0, 1, 2};
    case 4: return {0, 2, 4, 6};
    default: return split ? std::vector<int>{0, 2, 1, 4, 6, 5} : std::vector<int>{0, 1, 2, 4, 5, 6};
  }
}

/// vpshufb: each group of eight bytes back to front.
std::vector<uint8_t> reversed_groups(int vector_bits) {
  return vector_constant<uint8_t>(vector_bits, [](int i) { return i % 16 ^ 7; });
}

}  // namespace

BitPacker::BitPacker(const Target& target, ElementType element)
    : target_(target),
      element_(element),
      vector_bits_(target.vector_bits()),
      bytes_(codes_per_vector(vector_bits_) * bits_of(element) / 8) {
  const int bits = bits_of(element);
  const std::vector<int> group = bytes_of_group(element);
  if (target.supports(Feature::avx512_vbmi)) {
    picks_ = vector_constant<uint8_t>(vector_bits_, [&](int i) {
      return i < bytes_ ? i / bits * 8 + group[static_cast<size_t>(i % bits)] : 0;
    });
    return;
  }
  constexpr int no_byte = 0x80;
  // On AVX2 the bytes of the upper half go where those of the lower half end, if they fit.
  const bool joins_by_or = !target.has_avx512() && bytes_ <= 16 && bits != 4;
  picks_ = vector_constant<uint8_t>(vector_bits_, [&](int i) {
    const int in_part = i % 16 - (joins_by_or && i >= 16 ? 2 * bits : 0);
    return in_part >= 0 && in_part < 2 * bits
               ? in_part / bits * 8 + group[static_cast<size_t>(in_part % bits)]
               : no_byte;
  });
  if (target.has_avx512()) {
    joins_ = vector_constant<uint16_t>(
        vector_bits_, [&](int i) { return i < bytes_ / 2 ? i / bits * 8 + i % bits : 7; });
  }
}

/// Pairs of `element_bits` lanes are joined by multiplying with 1 and 2^width.
std::vector<uint8_t> BitPacker::weights(int width, bool msb_first, int element_bits) const {
  const auto weight = [&](int i) { return i % 2 == (msb_first ? 0 : 1) ? 1 << width : 1; };
  return element_bits == 8 ? vector_constant<uint8_t>(vector_bits_, weight)
                           : vector_constant<uint16_t>(vector_bits_, weight);
}

std::vector<uint8_t> BitPacker::low_bits(int width) const {
  return vector_constant<uint8_t>(vector_bits_, [&](int) { return (1 << width) - 1; });
}

void BitPacker::reserve_constants(LaneEmitter& emitter) const {
  const int bits = bits_of(element_);
  const StorageOrder order = info(element_).order;
  if (stores_as_mask()) {
    if (order == StorageOrder::msb_first) emitter.reserve_vector(reversed_groups(vector_bits_));
    if (target_.has_avx512()) emitter.reserve_vector(low_bits(1));
    return;
  }
  if (target_.has_avx512() && mask_of_packed(bytes_) != 0) {
    emitter.reserve_mask(mask_of_packed(bytes_));
  }
  emitter.reserve_vector(picks_);
  if (!joins_.empty()) emitter.reserve_vector(joins_);
  for (const BitField& field : bit_fields(element_)) {
    const bool msb_first = order != StorageOrder::lsb_first;
    emitter.reserve_vector(low_bits(order == StorageOrder::split ? field.width : bits));
    emitter.reserve_vector(weights(field.width, msb_first, 8));
    if (needs_32_bit_lanes(field.width)) {
      emitter.reserve_vector(weights(2 * field.width, msb_first, 16));
    }
  }
}

void BitPacker::emit_pack(LaneEmitter& emitter, const Xmm& codes) const {
  if (info(element_).order != StorageOrder::split) {
    emit_and(emitter, codes, codes, emitter.last_vector(low_bits(bits_of(element_))));
  }
  emit_pack_clean(emitter, codes);
}

void BitPacker::emit_pack_clean(LaneEmitter& emitter, const Xmm& codes) const {
  const StorageOrder order = info(element_).order;
  if (order == StorageOrder::split) {
    emit_gather_split(emitter, codes);
  } else {
    emit_gather_bits(emitter, codes, bits_of(element_), order == StorageOrder::msb_first);
  }
  emit_compress(emitter, codes);
}

void BitPacker::emit_store(LaneEmitter& emitter, const Xbyak::Address& to, const Xmm& codes,
                           bool clean, bool streaming) const {
  if (stores_as_mask()) return emit_store_as_mask(emitter, to, codes);
  clean ? emit_pack_clean(emitter, codes) : emit_pack(emitter, codes);
  const Xmm packed = vector_register(codes.getIdx(), bytes_ * 8);
  if (streaming && has_streaming_stores(target_, element_))
    return emitter.code().vmovntps(to, packed);
  emit_store_packed(emitter, to, codes);
}

/// u1: a mask is a bit for each byte, the first in the lowest.
void BitPacker::emit_store_as_mask(LaneEmitter& emitter, const Xbyak::Address& to,
                                   const Xmm& codes) const {
  Assembler& code = emitter.code();
  if (info(element_).order == StorageOrder::msb_first) {
    code.vpshufb(codes, codes, emitter.last_vector(reversed_groups(vector_bits_)));
  }
  if (!target_.has_avx512()) {
    const Xbyak::Reg32 bits = gpr::scratch.cvt32();  // addresses of whole groups leave it free
    code.vpsllw(codes, codes, 7);
    code.vpmovmskb(bits, Xbyak::Ymm(codes.getIdx()));
    return code.mov(to, bits);
  }
  const OwnedMask bits = emitter.scratch_mask();
  OwnedVector fallback;
  code.vptestmb(bits.get(), codes, emitter.vector(low_bits(1), fallback));
  code.kmovq(to, bits.get());
}

/// Makes elements of `width` bits, one per byte, adjacent: in each 16-bit lane for 4, in each
/// 32-bit lane for 2 and 6 (24 bits), in each 64-bit lane for 1 and 3.
void BitPacker::emit_gather_bits(LaneEmitter& emitter, const Xmm& codes, int width,
                                 bool msb_first) const {
  Assembler& code = emitter.code();
  code.vpmaddubsw(codes, codes, emitter.last_vector(weights(width, msb_first, 8)));
  if (!needs_32_bit_lanes(width)) return;
  code.vpmaddwd(codes, codes, emitter.last_vector(weights(2 * width, msb_first, 16)));
  if (!needs_64_bit_lanes(width)) return;
  const OwnedVector shifted = emitter.scratch();
  const Xmm other = shifted.as(vector_bits_);
  if (msb_first) {
    code.vpsrlq(other, codes, 32);
    code.vpsllq(codes, codes, static_cast<uint8_t>(4 * width));
  } else {
    code.vpsrlq(other, codes, static_cast<uint8_t>(32 - 4 * width));
  }
  emit_or(emitter, codes, codes, other);
}

/// Gathers the low bits as elements of their own, then the high bits in the byte after them.
void BitPacker::emit_gather_split(LaneEmitter& emitter, const Xmm& codes) const {
  Assembler& code = emitter.code();
  const std::vector<BitField> fields = bit_fields(element_);
  const OwnedVector high = emitter.scratch();
  const Xmm upper = high.as(vector_bits_);
  code.vpsrlw(upper, codes, static_cast<uint8_t>(fields[1].value_bit));
  for (const auto& [field, part] : {std::pair(fields[1], upper), std::pair(fields[0], codes)}) {
    emit_and(emitter, part, part, emitter.last_vector(low_bits(field.width)));
    emit_gather_bits(emitter, part, field.width, true);
  }
  // The low bits have left a byte free after their first one.
  code.vpslld(upper, upper, 8);
  emit_or(emitter, codes, codes, upper);
}

void BitPacker::emit_compress(LaneEmitter& emitter, const Xmm& units) const {
  Assembler& code = emitter.code();
  {
    OwnedVector fallback;
    const Xmm picks = emitter.vector(picks_, fallback);
    if (target_.supports(Feature::avx512_vbmi)) return code.vpermb(units, picks, units);
    code.vpshufb(units, units, picks);
  }
  if (!target_.has_avx512()) return emit_join_halves(emitter, units);
  OwnedVector fallback;
  code.vpermw(units, emitter.vector(joins_, fallback), units);
}

/// AVX2: joins the bytes of both halves, if they fit into one.
void BitPacker::emit_join_halves(LaneEmitter& emitter, const Xmm& halves) const {
  if (bytes_ > 16) return;
  Assembler& code = emitter.code();
  const Xbyak::Ymm whole(halves.getIdx());
  constexpr uint8_t first_quadwords = 0x08;
  if (bits_of(element_) == 4) return code.vpermq(whole, whole, first_quadwords);
  const OwnedVector upper = emitter.scratch();
  const Xmm low = vector_register(halves.getIdx(), 128);
  code.vextracti128(upper.as(128), whole, 1);
  code.vpor(low, low, upper.as(128));
}

void BitPacker::emit_store_packed(LaneEmitter& emitter, const Xbyak::Address& to,
                                  const Xmm& packed) const {
  Assembler& code = emitter.code();
  const Xmm low = vector_register(packed.getIdx(), 128);
  const auto at = [&](int bytes) { return code.ptr[to.getRegExp() + bytes]; };
  switch (bytes_) {
    case 8: return code.vmovq(to, low);
    case 12: code.vmovq(to, low); return code.vpextrd(at(8), low, 2);
    case 16:
    case 32: return code.vmovups(to, vector_register(packed.getIdx(), bytes_ * 8));
    default: break;
  }
  if (target_.has_avx512()) {
    std::optional<OwnedMask> fallback;
    const Opmask mask = emitter.mask(mask_of_packed(bytes_), fallback);
    return code.vmovdqu8(to | mask, masked_store_register(packed, bytes_));
  }
  // 24: twelve in each half.
  code.vmovq(to, low);
  code.vpextrd(at(8), low, 2);
  code.vextracti128(low, Xbyak::Ymm(packed.getIdx()), 1);
  code.vmovq(at(12), low);
  code.vpextrd(at(20), low, 2);
}

}  // namespace castor::jit
