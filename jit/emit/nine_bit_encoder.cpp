// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/nine_bit_encoder.hpp"

#include "jit/emit/byte_table.hpp"
#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

constexpr int vector_bits = 512;
constexpr uint8_t a_or_b_and_c = 0xf8;  // vpternlog
constexpr int ninth_bit = 0x01;         // in the upper byte
constexpr int sign_bit = 0x80;

/// The lower or upper bytes of the 16-bit lanes of two vectors.
OwnedVector emit_join(LaneEmitter& emitter, const Xmm& low, const Xmm& high, int offset) {
  Assembler& code = emitter.code();
  OwnedVector joined = emitter.scratch();
  const Xbyak::Zmm to = zmm(joined.as(vector_bits));
  code.vmovdqa64(to, zmm(low));
  OwnedVector fallback;
  const Xmm order = emitter.vector(every_second<uint8_t>(vector_bits, offset), fallback);
  code.vpermt2b(to, zmm(order), zmm(high));
  return joined;
}

}  // namespace

void NineBitEncoder::reserve_constants(LaneEmitter& emitter) const {
  reserve_table(emitter, table_);
  for (const int offset : {0, 1}) {
    emitter.reserve_vector(every_second<uint8_t>(vector_bits, offset));
  }
  for (const int bit : {ninth_bit, sign_bit}) {
    emitter.reserve_vector(repeated_constant<uint8_t>(vector_bits, bit));
  }
}

OwnedVector NineBitEncoder::emit_encode(LaneEmitter& emitter, const Xmm& low,
                                        const Xmm& high) const {
  Assembler& code = emitter.code();
  const OwnedVector upper = emit_join(emitter, low, high, 1);
  const Xbyak::Zmm upper_bytes = zmm(upper.as(vector_bits));
  OwnedVector codes = emitter.scratch();
  const Xbyak::Zmm result = zmm(codes.as(vector_bits));
  const auto constant = [&](int bit, OwnedVector& fallback) {
    return zmm(emitter.vector(repeated_constant<uint8_t>(vector_bits, bit), fallback));
  };
  {
    const OwnedVector indices = emit_join(emitter, low, high, 0);
    const OwnedVector others = emitter.scratch();
    emit_look_up_both(emitter, table_, indices.as(vector_bits), codes.as(vector_bits),
                      others.as(vector_bits));
    const OwnedMask has_ninth_bit = emitter.scratch_mask();
    {
      OwnedVector fallback;
      code.vptestmb(has_ninth_bit.get(), upper_bytes, constant(ninth_bit, fallback));
    }
    code.vmovdqu8(result | has_ninth_bit.get(), zmm(others.as(vector_bits)));
  }
  OwnedVector fallback;
  code.vpternlogd(result, upper_bytes, constant(sign_bit, fallback), a_or_b_and_c);
  return codes;
}

}  // namespace castor::jit
