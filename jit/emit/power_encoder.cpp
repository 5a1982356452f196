// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/power_encoder.hpp"

namespace castor::jit {

namespace {

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

PowerEncoder::PowerEncoder()
    : MergedBytesEncoder(
          {bytes(one), bytes(half), bytes(subnormal_offset), bytes(largest), bytes(nan)}) {}

/// The upper byte has the sign and seven bits of the exponent, the lower one its last bit and the
/// mantissa: doubled, and with that bit, they are exponent and mantissa. It is rounded up where the
/// mantissa is above half, or half and the exponent odd: with the exponent's last bit beneath the
/// mantissa, that is one comparison.
OwnedVector PowerEncoder::emit_codes(LaneEmitter& emitter, OwnedVector upper,
                                     OwnedVector lower) const {
  Assembler& code = emitter.code();
  const Xbyak::Zmm exponent = register_of(upper);
  const Xbyak::Zmm mantissa = register_of(lower);
  const OwnedMask negative = emitter.scratch_mask();
  const OwnedMask nans = emitter.scratch_mask();
  const OwnedMask work = emitter.scratch_mask();
  const Xbyak::Opmask mask = work.get();
  OwnedVector fallback;
  const auto all = [&](int value) { return constant(emitter, bytes(value), fallback); };
  code.vpmovb2m(negative.get(), exponent);
  code.vpmovb2m(mask, mantissa);
  code.vpaddb(exponent, exponent, exponent);
  code.vpaddb(mantissa, mantissa, mantissa);
  code.vpaddb(exponent | mask, exponent, all(one));
  code.vptestmb(mask, mantissa, mantissa);
  code.vpcmpeqb(nans.get() | mask, exponent, all(nan));
  code.vptestnmb(mask, exponent, exponent);
  code.vpternlogd(mantissa, exponent, all(one), a_or_b_and_c);
  code.vpsubusb(mantissa | mask, mantissa, all(subnormal_offset));
  code.vpcmpub(mask, mantissa, all(half), compare_greater);
  code.vpaddb(exponent | mask, exponent, all(one));
  code.vpminub(exponent, exponent, all(largest));
  code.vpsubb(exponent | negative.get(), exponent, exponent);
  code.vmovdqu8(exponent | nans.get(), all(nan));
  return upper;
}

}  // namespace castor::jit
