// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/merged_bytes_encoder.hpp"

#include <utility>

#include "jit/emit/bytes_of_lanes.hpp"
#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

constexpr int nibble = 0x0f;

/// After pairs of codes have come together in the lower two bytes of each 32 bits, that of the
/// first vector before that of the second.
std::vector<uint8_t> order_of_nibbles() {
  return vector_constant<uint8_t>(512, [](int i) { return i < 16 ? 4 * i : 4 * (i % 16) + 1; });
}

}  // namespace

MergedBytesEncoder::MergedBytesEncoder(std::vector<std::vector<uint8_t>> constants, int code_bits)
    : constants_(std::move(constants)), code_bits_(code_bits), order_(merged_byte) {}

void MergedBytesEncoder::reserve_constants(LaneEmitter& emitter) const {
  reserve_bytes_of_lanes(emitter, BytesApart::by_merges);
  for (const std::vector<uint8_t>& each : constants_) emitter.reserve_vector(each);
  if (!makes_nibbles()) return order_.reserve_constants(emitter);
  emitter.reserve_vector(bytes(nibble));
  emitter.reserve_vector(order_of_nibbles());
}

OwnedVector MergedBytesEncoder::emit_unordered(LaneEmitter& emitter, const Xmm& low,
                                               const Xmm& high) const {
  OwnedVector upper =
      emit_bytes_of_lanes(emitter, low, high, BytePart::upper, BytesApart::by_merges);
  OwnedVector lower =
      emit_bytes_of_lanes(emitter, low, high, BytePart::lower, BytesApart::by_merges);
  return emit_codes(emitter, std::move(upper), std::move(lower));
}

OwnedVector MergedBytesEncoder::emit_encode(LaneEmitter& emitter, const Xmm& low,
                                            const Xmm& high) const {
  OwnedVector codes = emit_unordered(emitter, low, high);
  if (makes_nibbles()) {
    OwnedVector fallback;
    const Xbyak::Zmm unpacked = register_of(codes);
    emitter.code().vpandd(unpacked, unpacked, constant(emitter, bytes(nibble), fallback));
  }
  order_.emit(emitter, codes.as(vector_bits));
  return codes;
}

/// Codes of consecutive lanes are two bytes apart.
OwnedVector MergedBytesEncoder::emit_encode_nibbles(LaneEmitter& emitter, const Xmm& low,
                                                    const Xmm& high) const {
  constexpr uint8_t a_where_c_else_b = 0xe4;  // vpternlog
  Assembler& code = emitter.code();
  OwnedVector owner = emit_unordered(emitter, low, high);
  const OwnedVector work = emitter.scratch();
  const Xbyak::Zmm codes = register_of(owner);
  const Xbyak::Zmm next = register_of(work);
  OwnedVector fallback;
  code.vpsrld(next, codes, 12);
  code.vpternlogd(codes, next, constant(emitter, bytes(nibble), fallback), a_where_c_else_b);
  code.vpermb(codes, constant(emitter, order_of_nibbles(), fallback), codes);
  return owner;
}

std::vector<uint8_t> MergedBytesEncoder::bytes(int value) {
  return repeated_constant<uint8_t>(vector_bits, value);
}

Xbyak::Zmm MergedBytesEncoder::register_of(const OwnedVector& vector) {
  return zmm(vector.as(vector_bits));
}

Xbyak::Zmm MergedBytesEncoder::constant(LaneEmitter& emitter, const std::vector<uint8_t>& bytes,
                                        OwnedVector& fallback) {
  return zmm(emitter.vector(bytes, fallback));
}

}  // namespace castor::jit
