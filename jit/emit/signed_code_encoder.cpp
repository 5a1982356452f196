// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/signed_code_encoder.hpp"

#include "jit/emit/bytes_of_lanes.hpp"
#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

constexpr int vector_bits = 512;
constexpr int sign_of_i16 = 15;         // its bit
constexpr uint8_t a_or_b_and_c = 0xf8;  // vpternlog
constexpr uint8_t b_where_c_else_a = 0xd8;

/// Where in 128 bits of joined i16 the code of a lane is: they hold four lanes each of
/// vectors 0 and 1 in their lower bytes, and of vectors 2 and 3 in their upper ones.
int byte_of(int vector, int lane) { return (vector % 2 * 4 + lane) * 2 + vector / 2; }

int source_of(int i) { return i % 16 / 4 * 16 + byte_of(i / 16, i % 4); }

}  // namespace

SignedCodeEncoder::SignedCodeEncoder(ElementType element)
    : order_(source_of),
      has_one_zero_(info(element).format.specials == FloatSpecials::fnuz),
      code_bits_(bits_of(element) - 1),
      first_bit_(7 - info(element).format.mantissa_bits) {}

void SignedCodeEncoder::reserve_constants(LaneEmitter& emitter) const {
  reserve_bytes_of_lanes(emitter, BytesApart::by_merges);
  order_.reserve_constants(emitter);
  if (has_one_zero_) {
    emitter.reserve_vector(repeated_constant<uint8_t>(vector_bits, 0x7f));
    emitter.reserve_vector(repeated_constant<uint8_t>(vector_bits, 0x80));
  } else {
    emitter.reserve_vector(repeated_constant<uint16_t>(vector_bits, ((1 << code_bits_) - 1) << 8));
  }
}

OwnedVector SignedCodeEncoder::emit_encode(LaneEmitter& emitter, const Xmm& low,
                                           const Xmm& high) const {
  Assembler& code = emitter.code();
  OwnedVector signs;
  if (has_one_zero_) {
    signs = emit_bytes_of_lanes(emitter, low, high, BytePart::upper, BytesApart::by_merges);
    for (const Xmm* lanes : {&low, &high}) {
      code.vpsllw(zmm(*lanes), zmm(*lanes), static_cast<uint8_t>(8 - first_bit_));
    }
  } else {
    emit_put_sign_above_code(emitter, low);
    emit_put_sign_above_code(emitter, high);
  }
  OwnedVector codes =
      emit_bytes_of_lanes(emitter, low, high, BytePart::upper, BytesApart::by_merges);
  const Xmm bytes = codes.as(vector_bits);
  if (has_one_zero_) {
    OwnedVector magnitude;
    OwnedVector sign_bit;
    const OwnedMask has_sign = emitter.scratch_mask();
    code.vptestmb(has_sign.get(), zmm(bytes),
                  zmm(emitter.vector(repeated_constant<uint8_t>(vector_bits, 0x7f), magnitude)));
    const Xbyak::Zmm sign = zmm(signs.as(vector_bits));
    code.vpandd(sign, sign,
                zmm(emitter.vector(repeated_constant<uint8_t>(vector_bits, 0x80), sign_bit)));
    code.vpaddb(zmm(bytes) | has_sign.get(), zmm(bytes), sign);
  }
  order_.emit(emitter, bytes);
  return codes;
}

/// The upper byte of each i16 becomes its code; the lower one may become anything.
void SignedCodeEncoder::emit_put_sign_above_code(LaneEmitter& emitter, const Xmm& lanes) const {
  Assembler& code = emitter.code();
  const OwnedVector shifted = emitter.scratch();
  const Xbyak::Zmm codes = zmm(shifted.as(vector_bits));
  code.vpsllw(codes, zmm(lanes), static_cast<uint8_t>(8 - first_bit_));
  if (code_bits_ < 7) code.vpsrlw(zmm(lanes), zmm(lanes), static_cast<uint8_t>(7 - code_bits_));
  OwnedVector fallback;
  const Xmm mask = emitter.vector(
      repeated_constant<uint16_t>(vector_bits, ((1 << code_bits_) - 1) << 8), fallback);
  code.vpternlogd(zmm(lanes), codes, zmm(mask), b_where_c_else_a);
}

OwnedVector SignedCodeEncoder::emit_encode_one(LaneEmitter& emitter, const Xmm& lanes) const {
  Assembler& code = emitter.code();
  const int bits = width_of(lanes);
  OwnedVector codes = emitter.scratch();
  const OwnedVector signs = emitter.scratch();
  const Xmm to = codes.as(bits);
  const Xmm sign = signs.as(bits);
  code.vpsrld(to, lanes, static_cast<uint8_t>(first_bit_));
  code.vpsrld(sign, lanes, static_cast<uint8_t>(sign_of_i16 - code_bits_));
  const auto constant = [&](int value, OwnedVector& fallback) {
    return vector_register(
        emitter.vector(repeated_constant<uint32_t>(vector_bits, value), fallback).getIdx(), bits);
  };
  {
    OwnedVector fallback;
    emit_and(emitter, sign, sign, constant(1 << code_bits_, fallback));
  }
  OwnedVector fallback;
  if (!has_one_zero_) {
    code.vpternlogd(sign, to, constant((1 << code_bits_) - 1, fallback), a_or_b_and_c);
    code.vpmovdb(codes.as(bits / 4), sign);
    return codes;
  }
  const OwnedMask has_sign = emitter.scratch_mask();
  code.vptestmd(has_sign.get(), to, constant(0x7f, fallback));
  code.vpaddd(to | has_sign.get(), to, sign);
  code.vpmovdb(codes.as(bits / 4), to);
  return codes;
}

}  // namespace castor::jit
