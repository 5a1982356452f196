// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/nine_bit_encoder.hpp"

#include "jit/emit/byte_table.hpp"
#include "jit/emit/bytes_of_lanes.hpp"
#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

constexpr int vector_bits = 512;
constexpr uint8_t a_or_b_and_c = 0xf8;  // vpternlog
constexpr int ninth_bit = 0x01;         // in the upper byte
constexpr int sign_bit = 0x80;

}  // namespace

void NineBitEncoder::reserve_constants(LaneEmitter& emitter) const {
  reserve_table(emitter, table_);
  reserve_bytes_of_lanes(emitter, emitter.bytes_apart());
  reserve_order(emitter, emitter.bytes_apart());
  for (const int bit : {ninth_bit, sign_bit}) {
    emitter.reserve_vector(repeated_constant<uint8_t>(vector_bits, bit));
  }
}

OwnedVector NineBitEncoder::emit_encode(LaneEmitter& emitter, const Xmm& low,
                                        const Xmm& high) const {
  Assembler& code = emitter.code();
  const OwnedVector upper =
      emit_bytes_of_lanes(emitter, low, high, BytePart::upper, emitter.bytes_apart());
  const Xbyak::Zmm upper_bytes = zmm(upper.as(vector_bits));
  OwnedVector codes = emitter.scratch();
  const Xbyak::Zmm result = zmm(codes.as(vector_bits));
  const auto constant = [&](int bit, OwnedVector& fallback) {
    return zmm(emitter.vector(repeated_constant<uint8_t>(vector_bits, bit), fallback));
  };
  {
    const OwnedVector indices =
        emit_bytes_of_lanes(emitter, low, high, BytePart::lower, emitter.bytes_apart());
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
  emit_in_order(emitter, result, emitter.bytes_apart());
  return codes;
}

}  // namespace castor::jit
