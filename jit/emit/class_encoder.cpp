// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/class_encoder.hpp"

#include <bit>

#include "jit/emit/byte_table.hpp"
#include "jit/emit/bytes_of_lanes.hpp"
#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

constexpr int vector_bits = 512;
constexpr uint8_t compare_less_equal = 2;  // vpcmpu
constexpr uint8_t compare_greater = 6;
constexpr uint8_t a_or_b_or_c = 0xfe;  // vpternlog

}  // namespace

std::vector<uint8_t> ClassEncoder::low_bits_matrix() const {
  return bit_matrix(vector_bits, 8 - table_.low_bits, 0, table_.low_bits);
}

std::vector<uint8_t> ClassEncoder::sign_matrix() const {
  return bit_matrix(vector_bits, 7, std::countr_zero(table_.sign_bit));
}

/// The lower byte of infinity.
std::vector<uint8_t> ClassEncoder::last_number_byte() const {
  return repeated_constant<uint8_t>(vector_bits, table_.infinity & 0xff);
}

void ClassEncoder::reserve_constants(LaneEmitter& emitter) const {
  reserve_byte_look_up(emitter, table_.classes);
  reserve_byte_look_up(emitter, table_.codes);
  reserve_bytes_of_lanes(emitter, emitter.bytes_apart());
  reserve_order(emitter, emitter.bytes_apart());
  if (table_.low_bits != 0) emitter.reserve_vector(low_bits_matrix());
  if (has_sign()) {
    emitter.reserve_vector(sign_matrix());
    emitter.reserve_vector(last_number_byte());
  } else {
    emitter.reserve_vector(repeated_constant<uint16_t>(vector_bits, table_.infinity));
  }
}

OwnedVector ClassEncoder::emit_encode(LaneEmitter& emitter, const Xmm& low, const Xmm& high) const {
  const BytesApart form = emitter.bytes_apart();
  const OwnedVector upper = emit_bytes_of_lanes(emitter, low, high, BytePart::upper, form);
  const OwnedVector lower = emit_bytes_of_lanes(emitter, low, high, BytePart::lower, form);
  const OwnedVector index = emitter.scratch();
  emit_look_up_bytes(emitter, table_.classes, upper.as(vector_bits), index.as(vector_bits));
  OwnedVector codes = emitter.scratch();
  const Xmm result = codes.as(vector_bits);
  const OwnedMask mask = emitter.scratch_mask();
  if (has_sign()) {
    emit_nans(emitter, mask.get(), index.as(vector_bits), lower.as(vector_bits));
    emit_index(emitter, index.as(vector_bits), lower.as(vector_bits), upper.as(vector_bits));
    emit_look_up_bytes(emitter, table_.codes, index.as(vector_bits), result);
    emitter.code().vpsubb(zmm(result) | mask.get(), zmm(result), zmm(result));
    emit_in_order(emitter, result, form);
    return codes;
  }
  emit_numbers_from_zero(emitter, mask.get(), low, high);
  emit_index(emitter, index.as(vector_bits), lower.as(vector_bits), upper.as(vector_bits));
  // The mask is in the order of the lanes, whatever the bytes' order is until the last shuffle.
  const Xmm kept = result | mask.get() | Xbyak::util::T_z;
  const bool is_in_order = form == BytesApart::by_permutation;
  emit_look_up_bytes(emitter, table_.codes, index.as(vector_bits), is_in_order ? kept : result);
  emit_in_order(emitter, kept, form);
  return codes;
}

/// Joins the class, which `index` holds, with the upper bits of the lower byte and the sign.
void ClassEncoder::emit_index(LaneEmitter& emitter, const Xmm& index, const Xmm& lower,
                              const Xmm& upper) const {
  Assembler& code = emitter.code();
  const auto emit_moved = [&](const Xmm& to, const Xmm& from, const std::vector<uint8_t>& matrix) {
    OwnedVector fallback;
    code.vgf2p8affineqb(zmm(to), zmm(from), zmm(emitter.vector(matrix, fallback)), 0);
  };
  const OwnedVector low_bits = emitter.scratch();
  if (table_.low_bits != 0) emit_moved(low_bits.as(vector_bits), lower, low_bits_matrix());
  const OwnedVector signs = emitter.scratch();
  if (has_sign()) emit_moved(signs.as(vector_bits), upper, sign_matrix());
  const Xbyak::Zmm to = zmm(index);
  if (table_.low_bits != 0 && has_sign()) {
    code.vpternlogd(to, zmm(low_bits.as(vector_bits)), zmm(signs.as(vector_bits)), a_or_b_or_c);
  } else if (has_sign()) {
    code.vpord(to, to, zmm(signs.as(vector_bits)));
  } else if (table_.low_bits != 0) {
    code.vpord(to, to, zmm(low_bits.as(vector_bits)));
  }
}

/// Which floats are NaNs, in the order of the bytes: those with infinity's upper byte and a lower
/// byte above its own. Other upper bytes of NaNs have a class of zeros.
void ClassEncoder::emit_nans(LaneEmitter& emitter, const Xbyak::Opmask& nans, const Xmm& classes,
                             const Xmm& lower) const {
  OwnedVector fallback;
  const Xbyak::Zmm last = zmm(emitter.vector(last_number_byte(), fallback));
  const OwnedMask has_mark = emitter.scratch_mask();
  emitter.code().vpmovb2m(has_mark.get(), zmm(classes));
  emitter.code().vpcmpub(nans | has_mark.get(), zmm(lower), last, compare_greater);
}

/// Which floats are numbers without a sign, in the order of the lanes.
void ClassEncoder::emit_numbers_from_zero(LaneEmitter& emitter, const Xbyak::Opmask& to,
                                          const Xmm& low, const Xmm& high) const {
  Assembler& code = emitter.code();
  const OwnedMask upper = emitter.scratch_mask();
  OwnedVector fallback;
  const Xbyak::Zmm infinity =
      zmm(emitter.vector(repeated_constant<uint16_t>(vector_bits, table_.infinity), fallback));
  code.vpcmpuw(to, zmm(low), infinity, compare_less_equal);
  code.vpcmpuw(upper.get(), zmm(high), infinity, compare_less_equal);
  code.kunpckdq(to, upper.get(), to);
}

}  // namespace castor::jit
