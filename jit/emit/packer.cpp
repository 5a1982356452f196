// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/packer.hpp"

#include <array>
#include <bit>

#include "jit/emit/resize_ops.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

int log2_of(int value) { return std::countr_zero(static_cast<unsigned>(value)); }

/// vpermt2{d,w,b}: every second element of two concatenated vectors.
std::vector<uint8_t> every_second_of(int to_bits, int vector_bits, int offset) {
  if (to_bits == 32) return every_second<uint32_t>(vector_bits, offset);
  if (to_bits == 16) return every_second<uint16_t>(vector_bits, offset);
  return every_second<uint8_t>(vector_bits, offset);
}

/// vpermq / vpermd: puts right what packs did, which interleave their operands by 128-bit parts:
/// after one pack by 64-bit lanes, after two by 32-bit lanes.
std::vector<uint8_t> order_after_packs(int packs, int vector_bits) {
  const int parts = vector_bits / 128;
  const int operands = packs == 1 ? 2 : 4;
  const auto source = [&](int i) { return i / parts + i % parts * operands; };
  return packs == 1 ? vector_constant<uint64_t>(vector_bits, source)
                    : vector_constant<uint32_t>(vector_bits, source);
}

/// A ymm or zmm register as the type that cross-lane permutations take.
Xbyak::Ymm wide_register(int index, int bits) {
  return bits == 512 ? static_cast<Xbyak::Ymm>(Xbyak::Zmm(index)) : Xbyak::Ymm(index);
}

bool saturates(Narrowing narrowing) {
  return narrowing == Narrowing::saturate_to_signed || narrowing == Narrowing::saturate_to_unsigned;
}

bool fits(Narrowing narrowing) {
  return narrowing == Narrowing::fits_signed || narrowing == Narrowing::fits_unsigned;
}

bool to_signed(Narrowing narrowing) {
  return narrowing == Narrowing::saturate_to_signed || narrowing == Narrowing::fits_signed;
}

}  // namespace

/// Moves the upper half of each lane of 16 or 32 bits to the lower one.
static void emit_shift_down_half(Assembler& code, const Xmm& to, const Xmm& from, int lane_bits) {
  lane_bits == 16 ? code.vpsrlw(to, from, 8) : code.vpsrld(to, from, 16);
}

bool needs_packing(const LaneInst& store, ElementType element, int lanes, const Target& target) {
  if (encodes(store.narrowing)) return true;
  const bool by_table = looks_up(store.narrowing);
  const int element_bits = lane_bits_of(element);
  const int min_bits = is_sub_byte(element) ? target.vector_bits() : 128;
  return !by_table && (bits_of(store.type) != element_bits || lanes * element_bits < min_bits);
}

Packer::Packer(const LaneEmitter& emitter, int lane_bits, int element_bits, Narrowing narrowing)
    : lane_bits_(lane_bits),
      element_bits_(element_bits),
      vector_bits_(emitter.target().vector_bits()),
      packed_bits_(vector_bits_),
      chunk_bits_(emitter.lanes() * lane_bits),
      narrowing_(narrowing),
      narrow_stages_(log2_of(lane_bits / element_bits)) {
  if (!emitter.has_avx512() && chunk_bits_ <= 128) packed_bits_ = 128;
  packs_what_fits_ = emitter.bytes_apart() == BytesApart::by_merges;
  concat_stages_ = log2_of(packed_bits_ / chunk_bits_);
  join_stages_ = log2_of(vector_bits_ / packed_bits_);
}

void Packer::reserve_constants(LaneEmitter& emitter) {
  if (!emitter.has_avx512() || narrowing_ == Narrowing::signed_code) return;
  if (saturates(narrowing_)) {
    emitter.reserve_vector(order_after_packs(narrow_stages_, vector_bits_));
    return;
  }
  for (int bits = lane_bits_; bits > element_bits_; bits /= 2) {
    if (packs(bits)) {
      emitter.reserve_vector(order_after_packs(log2_of(bits / element_bits_), vector_bits_));
      return;
    }
    const bool by_permute = bits > 16 || emitter.target().supports(Feature::avx512_vbmi);
    const int offset = narrowing_ == Narrowing::high_half ? 1 : 0;
    emitter.reserve_vector(by_permute ? every_second_of(bits / 2, vector_bits_, offset)
                                      : order_after_packs(1, vector_bits_));
  }
}

/// Whether packs narrow lanes of that many bits with AVX-512. Permutations of two vectors, which
/// keep the order, are as fast on some cores.
bool Packer::packs(int from_bits) const {
  return saturates(narrowing_) || (packs_what_fits_ && fits(narrowing_) && from_bits <= 32);
}

bool Packer::emit_push(LaneEmitter& emitter, OwnedVector chunk, OwnedVector& full) {
  int stage = 0;
  while (!pending_.empty() && pending_.back().stage == stage) {
    OwnedVector low = std::move(pending_.back().vector);
    pending_.pop_back();
    emit_combine(emitter, stage, low, chunk);
    chunk = std::move(low);
    ++stage;
  }
  if (stage == stages()) {
    full = std::move(chunk);
    return true;
  }
  pending_.push_back({std::move(chunk), stage});
  return false;
}

void Packer::emit_combine(LaneEmitter& emitter, int stage, OwnedVector& low,
                          OwnedVector& high) const {
  const int narrowed = stage - concat_stages_;
  if (narrowed < 0) return emit_concatenate(emitter, chunk_bits_ << stage, low, high);
  if (narrowed < narrow_stages_) return emit_narrow(emitter, lane_bits_ >> narrowed, low, high);
  emit_concatenate(emitter, packed_bits_, low, high);
}

void Packer::emit_concatenate(LaneEmitter& emitter, int bits, OwnedVector& low,
                              OwnedVector& high) const {
  Assembler& code = emitter.code();
  switch (bits) {
    case 256: {
      const Xbyak::Zmm whole(low.as(512).getIdx());
      return code.vinserti64x4(whole, whole, Xbyak::Ymm(high.as(256).getIdx()), 1);
    }
    case 128: {
      const Xbyak::Ymm whole(low.as(256).getIdx());
      if (emitter.has_avx512()) return code.vinserti32x4(whole, whole, high.as(128), 1);
      return code.vinserti128(whole, whole, high.as(128), 1);
    }
    case 64: return code.vpunpcklqdq(low.as(128), low.as(128), high.as(128));
    default: return code.vpunpckldq(low.as(128), low.as(128), high.as(128));
  }
}

void Packer::emit_narrow(LaneEmitter& emitter, int from_bits, OwnedVector& low,
                         OwnedVector& high) const {
  if (narrowing_ == Narrowing::signed_code) {  // in whichever order: SignedCodeEncoder knows it
    return emitter.code().vpackssdw(low.as(vector_bits_), low.as(vector_bits_),
                                    high.as(vector_bits_));
  }
  const bool last = from_bits / 2 == element_bits_;
  if (narrowing_ == Narrowing::magnitude_code) {
    if (last) emit_clear_upper_parts(emitter, from_bits, low, high);
    emit_pack_in_halves(emitter, from_bits, false, low, high);
    return last && !leaves_order_ ? emit_restore_order(emitter, low) : void();
  }
  const bool avx512 = emitter.has_avx512();
  const bool byte_permute = emitter.target().supports(Feature::avx512_vbmi);
  const bool pack_is_exact = saturates(narrowing_) || (fits(narrowing_) && from_bits <= 32);
  if (avx512 && !packs(from_bits) && (from_bits > 16 || byte_permute)) {
    return emit_permute_even(emitter, from_bits, low, high);
  }
  if (!avx512 && from_bits == 64) {
    constexpr uint8_t even_lanes = 0x88;
    const Xmm to = low.as(packed_bits_);
    emitter.code().vshufps(to, to, high.as(packed_bits_), even_lanes);
    return emit_restore_order(emitter, 1, low);
  }
  // Packs saturate i16 and i32; what must wrap is cut down first. Elements that go on
  // to bytes are cut down to bytes at once, and then fit both packs.
  const bool cut_before = !avx512 && from_bits == 16 && lane_bits_ >= 32;
  if (!pack_is_exact && !cut_before) emit_clear_upper_parts(emitter, from_bits, low, high);
  const bool signed_pack = pack_is_exact && (!last || to_signed(narrowing_));
  emit_pack_in_halves(emitter, from_bits, signed_pack, low, high);
  // The order of packed parts is put right once, after the last pack. On AVX-512 a pack follows
  // permutations (which keep order) unless both stages saturate.
  const bool two_packs = from_bits == 16 && lane_bits_ >= 32 && (!avx512 || packs(32));
  if (last && !leaves_order_) emit_restore_order(emitter, two_packs ? 2 : 1, low);
}

void Packer::emit_permute_even(LaneEmitter& emitter, int from_bits, OwnedVector& low,
                               OwnedVector& high) const {
  Assembler& code = emitter.code();
  const int offset = narrowing_ == Narrowing::high_half ? 1 : 0;
  OwnedVector fallback;
  const Xmm table = emitter.vector(every_second_of(from_bits / 2, vector_bits_, offset), fallback);
  const Xmm to = low.as(vector_bits_);
  const Xmm other = high.as(vector_bits_);
  switch (from_bits) {
    case 64: return code.vpermt2d(to, table, other);
    case 32: return code.vpermt2w(to, table, other);
    default: return code.vpermt2b(to, table, other);
  }
}

void Packer::emit_clear_upper_parts(LaneEmitter& emitter, int from_bits, OwnedVector& low,
                                    OwnedVector& high) const {
  Assembler& code = emitter.code();
  const Xmm a = low.as(packed_bits_);
  const Xmm b = high.as(packed_bits_);
  if (narrowing_ == Narrowing::high_half || narrowing_ == Narrowing::magnitude_code) {
    emit_shift_down_half(code, a, a, from_bits);
    emit_shift_down_half(code, b, b, from_bits);
    return;
  }
  const uint64_t kept = element_bits_ == 8 ? 0xff : 0xffff;
  const uint64_t mask = from_bits == 32 ? kept | kept << 32 : kept * 0x0001000100010001;
  OwnedVector fallback;
  const auto table = vector_constant<uint64_t>(packed_bits_, [&](int) { return mask; });
  const Xmm keep = emitter.vector(table, fallback);
  emit_and(emitter, a, a, keep);
  emit_and(emitter, b, b, keep);
}

void Packer::emit_pack_in_halves(LaneEmitter& emitter, int from_bits, bool signed_pack,
                                 OwnedVector& low, OwnedVector& high) const {
  Assembler& code = emitter.code();
  const Xmm a = low.as(packed_bits_);
  const Xmm b = high.as(packed_bits_);
  if (from_bits == 32) {
    signed_pack ? code.vpackssdw(a, a, b) : code.vpackusdw(a, a, b);
  } else {
    signed_pack ? code.vpacksswb(a, a, b) : code.vpackuswb(a, a, b);
  }
}

void Packer::emit_restore_order(LaneEmitter& emitter, int packs, OwnedVector& vector) const {
  if (packed_bits_ == 128) return;
  Assembler& code = emitter.code();
  const Xmm v = vector.as(vector_bits_);
  if (packs == 1 && vector_bits_ == 256) {
    constexpr uint8_t lanes_0_2_1_3 = 0xd8;
    return code.vpermq(Xbyak::Ymm(v.getIdx()), Xbyak::Ymm(v.getIdx()), lanes_0_2_1_3);
  }
  OwnedVector fallback;
  const Xmm table = emitter.vector(order_after_packs(packs, vector_bits_), fallback);
  const Xbyak::Ymm to = wide_register(v.getIdx(), vector_bits_);
  const Xbyak::Ymm order = wide_register(table.getIdx(), vector_bits_);
  packs == 1 ? code.vpermq(to, order, v) : code.vpermd(to, order, v);
}

namespace {

/// AVX-512: vpmovs (signed saturation) and, of lanes that are not negative, vpmovus.
void emit_narrow_saturating_avx512(LaneEmitter& emitter, const Xmm& to, const Xmm& from,
                                   int lane_bits, int element_bits, bool is_signed) {
  Assembler& code = emitter.code();
  if (is_signed) {
    if (lane_bits == 16) return code.vpmovswb(to, from);
    return element_bits == 8 ? code.vpmovsdb(to, from) : code.vpmovsdw(to, from);
  }
  const OwnedVector zero = emitter.scratch();
  const Xmm none = zero.as(width_of(from));
  const Xmm positive = vector_register(to.getIdx(), width_of(from));
  code.vpxord(none, none, none);
  if (lane_bits == 16) {
    code.vpmaxsw(positive, from, none);
    return code.vpmovuswb(to, positive);
  }
  code.vpmaxsd(positive, from, none);
  element_bits == 8 ? code.vpmovusdb(to, positive) : code.vpmovusdw(to, positive);
}

/// AVX2: packs of the register with itself, then the valid parts of both halves together.
void emit_narrow_saturating_avx2(LaneEmitter& emitter, const OwnedVector& to, const Xmm& from,
                                 int lane_bits, int element_bits, bool is_signed) {
  Assembler& code = emitter.code();
  const Xmm wide = to.as(width_of(from));
  Xmm current = from;
  if (lane_bits == 32) {
    const bool signed_pack = element_bits == 8 || is_signed;
    signed_pack ? code.vpackssdw(wide, current, current) : code.vpackusdw(wide, current, current);
    current = wide;
  }
  if (element_bits == 8) {
    is_signed ? code.vpacksswb(wide, current, current) : code.vpackuswb(wide, current, current);
  }
  if (width_of(from) == 256) {
    emit_join_lanes(emitter, to.as(128), wide, 128 * element_bits / lane_bits);
  }
}

}  // namespace

void emit_narrow_one(LaneEmitter& emitter, const OwnedVector& to, const Xmm& from, int lane_bits,
                     int element_bits, Narrowing narrowing) {
  const Xmm narrow = to.as(emitter.lanes() * element_bits);
  if (narrowing == Narrowing::from_unsigned) {
    return element_bits == 8 ? emitter.code().vpmovusdb(narrow, from)
                             : emitter.code().vpmovusdw(narrow, from);
  }
  if (saturates(narrowing)) {
    if (emitter.has_avx512()) {
      return emit_narrow_saturating_avx512(emitter, narrow, from, lane_bits, element_bits,
                                           to_signed(narrowing));
    }
    return emit_narrow_saturating_avx2(emitter, to, from, lane_bits, element_bits,
                                       to_signed(narrowing));
  }
  if (narrowing == Narrowing::high_half) {
    const Xmm shifted = to.as(width_of(from));
    emit_shift_down_half(emitter.code(), shifted, from, lane_bits);
    return emit_truncate(emitter, narrow, shifted, lane_bits, element_bits);
  }
  emit_truncate(emitter, narrow, from, lane_bits, element_bits);
}

}  // namespace castor::jit
