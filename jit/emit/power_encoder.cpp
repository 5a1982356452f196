// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/power_encoder.hpp"

#include "jit/emit/bytes_of_lanes.hpp"
#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

constexpr int vector_bits = 512;
constexpr uint8_t a_or_b_and_c = 0xf8;  // vpternlog
constexpr uint8_t compare_greater = 6;  // vpcmpu

constexpr int one = 1;
constexpr int nan = 0xff;
constexpr int largest = 0xfe;
constexpr int half = 0x80;  ///< the mantissa halfway to the next power
/// 2^-127 has f32's exponent 0, where the mantissa counts from 0: what is halfway to 2^-126 has a
/// mantissa of 0xc0 there.
constexpr int subnormal_offset = 0x40;

}  // namespace

PowerEncoder::PowerEncoder() : order_(merged_byte) {}

void PowerEncoder::reserve_constants(LaneEmitter& emitter) const {
  reserve_bytes_of_lanes(emitter, BytesApart::by_merges);
  for (const int value : {one, half, subnormal_offset, largest, nan}) {
    emitter.reserve_vector(repeated_constant<uint8_t>(vector_bits, value));
  }
  order_.reserve_constants(emitter);
}

/// The upper byte has the sign and seven bits of the exponent, the lower one its last bit and the
/// mantissa: doubled, and with that bit, they are exponent and mantissa. It is rounded up where the
/// mantissa is above half, or half and the exponent odd: with the exponent's last bit beneath the
/// mantissa, that is one comparison.
OwnedVector PowerEncoder::emit_encode(LaneEmitter& emitter, const Xmm& low, const Xmm& high) const {
  Assembler& code = emitter.code();
  OwnedVector codes =
      emit_bytes_of_lanes(emitter, low, high, BytePart::upper, BytesApart::by_merges);
  const OwnedVector lower =
      emit_bytes_of_lanes(emitter, low, high, BytePart::lower, BytesApart::by_merges);
  const Xbyak::Zmm exponent = zmm(codes.as(vector_bits));
  const Xbyak::Zmm mantissa = zmm(lower.as(vector_bits));
  const OwnedMask negative = emitter.scratch_mask();
  const OwnedMask nans = emitter.scratch_mask();
  const OwnedMask work = emitter.scratch_mask();
  const Xbyak::Opmask mask = work.get();
  OwnedVector fallback;
  const auto constant = [&](int value) {
    return zmm(emitter.vector(repeated_constant<uint8_t>(vector_bits, value), fallback));
  };
  code.vpmovb2m(negative.get(), exponent);
  code.vpmovb2m(mask, mantissa);
  code.vpaddb(exponent, exponent, exponent);
  code.vpaddb(mantissa, mantissa, mantissa);
  code.vpaddb(exponent | mask, exponent, constant(one));
  code.vptestmb(mask, mantissa, mantissa);
  code.vpcmpeqb(nans.get() | mask, exponent, constant(nan));
  code.vptestnmb(mask, exponent, exponent);
  code.vpternlogd(mantissa, exponent, constant(one), a_or_b_and_c);
  code.vpsubusb(mantissa | mask, mantissa, constant(subnormal_offset));
  code.vpcmpub(mask, mantissa, constant(half), compare_greater);
  code.vpaddb(exponent | mask, exponent, constant(one));
  code.vpminub(exponent, exponent, constant(largest));
  code.vpsubb(exponent | negative.get(), exponent, exponent);
  code.vmovdqu8(exponent | nans.get(), constant(nan));
  order_.emit(emitter, exponent);
  return codes;
}

}  // namespace castor::jit
