// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/bytes_of_lanes.hpp"

#include "jit/emit/op_helpers.hpp"

namespace castor::jit {

namespace {

constexpr int vector_bits = 512;

}  // namespace

std::vector<uint8_t> control_of_bytes(BytesApart form, BytePart part) {
  if (form == BytesApart::by_merges) return repeated_constant<uint16_t>(vector_bits, 0xff00);
  return every_second<uint8_t>(vector_bits, part == BytePart::upper ? 1 : 0);
}

void emit_bytes_of_lanes(Assembler& code, BytesApart form, BytePart part, const Xbyak::Zmm& to,
                         const Xbyak::Zmm& low, const Xbyak::Zmm& high, const Xbyak::Zmm& control) {
  constexpr uint8_t b_where_c_else_a = 0xd8;  // vpternlog
  constexpr uint8_t a_where_c_else_b = 0xe4;
  if (form == BytesApart::by_permutation) {
    if (to.getIdx() != low.getIdx()) code.vmovdqa64(to, low);
    code.vpermt2b(to, control, high);
  } else if (part == BytePart::upper) {
    code.vpsrlw(to, low, 8);
    code.vpternlogd(to, high, control, b_where_c_else_a);
  } else {
    code.vpsllw(to, high, 8);
    code.vpternlogd(to, low, control, a_where_c_else_b);
  }
}

void reserve_bytes_of_lanes(LaneEmitter& emitter, BytesApart form) {
  emitter.reserve_vector(control_of_bytes(form, BytePart::lower));
  if (form == BytesApart::by_merges) return;
  emitter.reserve_vector(control_of_bytes(form, BytePart::upper));
}

void reserve_order(LaneEmitter& emitter, BytesApart form) {
  if (form == BytesApart::by_merges) emitter.reserve_vector(order_of_merged());
}

OwnedVector emit_bytes_of_lanes(LaneEmitter& emitter, const Xmm& low, const Xmm& high,
                                BytePart part, BytesApart form) {
  OwnedVector bytes = emitter.scratch();
  OwnedVector fallback;
  const Xmm control = emitter.vector(control_of_bytes(form, part), fallback);
  emit_bytes_of_lanes(emitter.code(), form, part, zmm(bytes.as(vector_bits)), zmm(low), zmm(high),
                      zmm(control));
  return bytes;
}

void emit_in_order(LaneEmitter& emitter, const Xmm& bytes, BytesApart form) {
  if (form == BytesApart::by_permutation) return;
  OwnedVector fallback;
  const Xbyak::Zmm order = zmm(emitter.vector(order_of_merged(), fallback));
  emitter.code().vpermb(zmm_masked(bytes), order, zmm(bytes));
}

}  // namespace castor::jit
