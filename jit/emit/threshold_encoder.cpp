// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/threshold_encoder.hpp"

#include <bit>

#include "jit/emit/byte_table.hpp"
#include "jit/emit/bytes_of_lanes.hpp"
#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

constexpr int vector_bits = 512;
constexpr uint8_t compare_not_less = 5;  // vpcmpu
constexpr uint8_t compare_not_less_equal = 6;
constexpr uint8_t a_xor_b_and_c = 0x78;  // vpternlog
constexpr uint8_t a_and_c_or_b = 0xec;

}  // namespace

void ThresholdEncoder::reserve_constants(LaneEmitter& emitter) const {
  reserve_table(emitter, table_.buckets);
  reserve_bytes_of_lanes(emitter, form_of(emitter));
  reserve_order(emitter, form_of(emitter));
  emitter.reserve_vector(repeated_constant<uint16_t>(vector_bits, 0x7fff));
  emitter.reserve_vector(repeated_constant<uint16_t>(vector_bits, table_.max));
  if (table_.base != 0)
    emitter.reserve_vector(repeated_constant<uint16_t>(vector_bits, table_.base));
  emitter.reserve_vector(repeated_constant<uint8_t>(vector_bits, (1 << table_.shift) - 1));
  emitter.reserve_vector(repeated_constant<uint8_t>(vector_bits, 1));
  if (table_.sign_bit != 0)
    emitter.reserve_vector(repeated_constant<uint8_t>(vector_bits, table_.sign_bit));
}

OwnedVector ThresholdEncoder::emit_encode(LaneEmitter& emitter, const Xmm& low,
                                          const Xmm& high) const {
  const BytesApart form = form_of(emitter);
  const OwnedMask nans = emitter.scratch_mask();
  OwnedVector indices = emit_bucket_indices(emitter, low, nans);
  {
    const OwnedMask upper_nans = emitter.scratch_mask();
    const OwnedVector upper = emit_bucket_indices(emitter, high, upper_nans);
    indices = emit_bytes_of_lanes(emitter, indices.as(vector_bits), upper.as(vector_bits),
                                  BytePart::lower, form);
    if (has_own_nans()) emitter.code().kunpckdq(nans.get(), upper_nans.get(), nans.get());
  }
  const OwnedVector low_bytes = emit_bytes_of_lanes(emitter, low, high, BytePart::lower, form);
  const OwnedVector upper_bytes = emit_bytes_of_lanes(emitter, low, high, BytePart::upper, form);
  const OwnedVector low_bits = emit_low_bits(emitter, low_bytes.as(vector_bits));
  OwnedVector codes = emitter.scratch();
  const Xmm result = codes.as(vector_bits);
  {
    const OwnedVector thresholds = emitter.scratch();
    emit_look_up_both(emitter, table_.buckets, indices.as(vector_bits), result,
                      thresholds.as(vector_bits));
    emit_add_one_from_threshold(emitter, result, thresholds.as(vector_bits),
                                low_bits.as(vector_bits));
  }
  const bool nans_have_sign = table_.nan != ThresholdTable::constant;
  if (has_own_nans() && nans_have_sign) {
    emit_nans(emitter, result, upper_bytes.as(vector_bits), low_bytes.as(vector_bits), nans);
  }
  emit_apply_sign(emitter, result, upper_bytes.as(vector_bits));
  if (has_own_nans() && !nans_have_sign) {
    emit_nans(emitter, result, upper_bytes.as(vector_bits), low_bytes.as(vector_bits), nans);
  }
  emit_in_order(emitter, result, form);
  return codes;
}

/// Masks of NaNs are in order.
BytesApart ThresholdEncoder::form_of(const LaneEmitter& emitter) const {
  return has_own_nans() ? BytesApart::by_permutation : emitter.bytes_apart();
}

/// The number of each float's bucket, in the low byte of its lane, and which floats are NaN.
OwnedVector ThresholdEncoder::emit_bucket_indices(LaneEmitter& emitter, const Xmm& floats,
                                                  const OwnedMask& nans) const {
  Assembler& code = emitter.code();
  OwnedVector result = emitter.scratch();
  const Xbyak::Zmm to = zmm(result.as(vector_bits));
  const auto emit_with = [&](const std::vector<uint8_t>& constant, BinaryMnemonic mnemonic,
                             const Xmm& from) {
    OwnedVector fallback;
    mnemonic(code, to, from, emitter.vector(constant, fallback));
  };
  emit_with(repeated_constant<uint16_t>(vector_bits, 0x7fff), CASTOR_BINARY(vpandd), zmm(floats));
  if (has_own_nans()) {
    OwnedVector fallback;
    const Xmm infinity =
        emitter.vector(repeated_constant<uint16_t>(vector_bits, table_.infinity), fallback);
    code.vpcmpuw(nans.get(), to, zmm(infinity), compare_not_less_equal);
  }
  emit_with(repeated_constant<uint16_t>(vector_bits, table_.max), CASTOR_BINARY(vpminuw), to);
  if (table_.base != 0)
    emit_with(repeated_constant<uint16_t>(vector_bits, table_.base), CASTOR_BINARY(vpsubusw), to);
  code.vpsrlw(to, to, static_cast<uint8_t>(table_.shift));
  return result;
}

/// The bits below `shift`, which tell apart the floats of one bucket.
OwnedVector ThresholdEncoder::emit_low_bits(LaneEmitter& emitter, const Xmm& low_bytes) const {
  OwnedVector result = emitter.scratch();
  OwnedVector fallback;
  const Xmm mask =
      emitter.vector(repeated_constant<uint8_t>(vector_bits, (1 << table_.shift) - 1), fallback);
  emitter.code().vpandd(zmm(result.as(vector_bits)), zmm(low_bytes), zmm(mask));
  return result;
}

void ThresholdEncoder::emit_add_one_from_threshold(LaneEmitter& emitter, const Xmm& codes,
                                                   const Xmm& thresholds,
                                                   const Xmm& low_bits) const {
  Assembler& code = emitter.code();
  const OwnedMask next = emitter.scratch_mask();
  code.vpcmpub(next.get(), zmm(low_bits), zmm(thresholds), compare_not_less);
  OwnedVector fallback;
  const Xmm one = emitter.vector(repeated_constant<uint8_t>(vector_bits, 1), fallback);
  code.vpaddb(zmm(codes) | next.get(), zmm(codes), zmm(one));
}

void ThresholdEncoder::emit_apply_sign(LaneEmitter& emitter, const Xmm& codes,
                                       const Xmm& upper) const {
  Assembler& code = emitter.code();
  if (table_.sign == ThresholdTable::negative_is_zero) {
    const OwnedMask negative = emitter.scratch_mask();
    const OwnedMask positive = emitter.scratch_mask();
    code.vpmovb2m(negative.get(), zmm(upper));
    code.knotq(positive.get(), negative.get());
    code.vmovdqu8(zmm(codes) | positive.get() | Xbyak::util::T_z, zmm(codes));
    return;
  }
  OwnedVector signs = emitter.scratch();
  const Xbyak::Zmm sign = zmm(signs.as(vector_bits));
  if (table_.sign_bit != 0x80) {  // the code is narrower than a byte
    code.vpsrlw(sign, zmm(upper), static_cast<uint8_t>(std::countl_zero(table_.sign_bit)));
  } else {
    code.vmovdqa64(sign, zmm(upper));
  }
  OwnedVector fallback;
  const Xbyak::Zmm bit =
      zmm(emitter.vector(repeated_constant<uint8_t>(vector_bits, table_.sign_bit), fallback));
  if (table_.sign == ThresholdTable::copied) {
    // A NaN's code may have the sign's bit already, where it becomes the zero of the other sign.
    code.vpternlogd(zmm(codes), sign, bit, a_xor_b_and_c);
    return;
  }
  const OwnedMask nonzero = emitter.scratch_mask();
  code.vptestmb(nonzero.get(), zmm(codes), zmm(codes));
  code.vpternlogd(sign, zmm(codes), bit, a_and_c_or_b);
  code.vmovdqu8(zmm(codes) | nonzero.get(), sign);
}

/// NaNs with a sign have their code without it, before signs are applied.
void ThresholdEncoder::emit_nans(LaneEmitter& emitter, const Xmm& codes, const Xmm& upper,
                                 const Xmm& low_bytes, const OwnedMask& nans) const {
  Assembler& code = emitter.code();
  if (table_.nan != ThresholdTable::with_sign_and_payload) {
    OwnedVector fallback;
    return code.vmovdqu8(
        zmm(codes) | nans.get(),
        zmm(emitter.vector(repeated_constant<uint8_t>(vector_bits, table_.nan_code), fallback)));
  }
  OwnedVector fallback;
  const Xmm matrix = emitter.vector(payload_matrix(), fallback);
  code.vgf2p8affineqb(zmm(codes) | nans.get(), zmm(payload_in_low_byte() ? low_bytes : upper),
                      zmm(matrix), table_.nan_code);
}

/// The mantissa bit below the quiet bit: bit 5 of bf16; bit 8 of f16, the upper byte's bit 0.
bool ThresholdEncoder::payload_in_low_byte() const { return table_.infinity == 0x7f80; }

/// The payload's bit becomes bit 0.
std::vector<uint8_t> ThresholdEncoder::payload_matrix() const {
  return bit_matrix(vector_bits, payload_in_low_byte() ? 5 : 0, 0);
}

}  // namespace castor::jit
