// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/e5m2_encoder_avx2.hpp"

#include "jit/emit/e5m2_encoder.hpp"
#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

constexpr int vector_bits = 256;
using namespace e5m2;

std::vector<uint8_t> lower_bytes() {
  return vector_constant<uint16_t>(vector_bits, [](int) { return 0xff; });
}

}  // namespace

void E5m2EncoderAvx2::reserve_constants(LaneEmitter& emitter) const {
  emitter.reserve_vector(lower_bytes());
  for (const int value : {last_bit, magnitude, infinity, half}) {
    emitter.reserve_vector(repeated_constant<uint8_t>(vector_bits, value));
  }
}

/// A number is rounded up where what is dropped is more than half a unit, or half with an odd code:
/// with the code's last bit beneath it, that is one saturating subtraction. Infinity has nothing to
/// drop, and NaNs stay.
OwnedVector E5m2EncoderAvx2::emit_encode(LaneEmitter& emitter, const Xmm& low,
                                         const Xmm& high) const {
  constexpr uint8_t lanes_0_2_1_3 = 0xd8;  // packs interleave halves
  Assembler& code = emitter.code();
  OwnedVector codes = emitter.scratch();
  const OwnedVector dropped = emitter.scratch();
  const OwnedVector scratch = emitter.scratch();
  const Xbyak::Ymm upper = ymm(codes.as(vector_bits));
  const Xbyak::Ymm lower = ymm(dropped.as(vector_bits));
  const Xbyak::Ymm work = ymm(scratch.as(vector_bits));
  const auto emit_with = [&](BinaryMnemonic mnemonic, const Xmm& to, const Xmm& from,
                             const std::vector<uint8_t>& constant) {
    OwnedVector fallback;
    mnemonic(code, to, from, emitter.vector(constant, fallback));
  };
  emit_with(CASTOR_BINARY(vpand), lower, ymm(low), lower_bytes());
  emit_with(CASTOR_BINARY(vpand), work, ymm(high), lower_bytes());
  code.vpackuswb(lower, lower, work);
  code.vpsrlw(upper, ymm(low), 8);
  code.vpsrlw(work, ymm(high), 8);
  code.vpackuswb(upper, upper, work);
  emit_with(CASTOR_BINARY(vpand), work, upper, repeated_constant<uint8_t>(vector_bits, last_bit));
  code.vpor(lower, lower, work);
  emit_with(CASTOR_BINARY(vpsubusb), lower, lower, repeated_constant<uint8_t>(vector_bits, half));
  emit_with(CASTOR_BINARY(vpminub), lower, lower,
            repeated_constant<uint8_t>(vector_bits, last_bit));
  emit_with(CASTOR_BINARY(vpand), work, upper, repeated_constant<uint8_t>(vector_bits, magnitude));
  emit_with(CASTOR_BINARY(vpcmpgtb), work, work, repeated_constant<uint8_t>(vector_bits, infinity));
  code.vpandn(lower, work, lower);
  code.vpaddb(upper, upper, lower);
  code.vpermq(upper, upper, lanes_0_2_1_3);
  return codes;
}

}  // namespace castor::jit
