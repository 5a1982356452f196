// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/bytes_of_lanes.hpp"

#include "jit/emit/byte_order.hpp"
#include "jit/emit/op_helpers.hpp"

namespace castor::jit {

namespace {

constexpr int vector_bits = 512;

/// vpermt2b: the lower or upper byte of each lane of two vectors.
std::vector<uint8_t> every_second_byte(BytePart part) {
  return every_second<uint8_t>(vector_bits, part == BytePart::upper ? 1 : 0);
}

}  // namespace

void reserve_bytes_of_lanes(LaneEmitter& emitter, BytesApart form) {
  if (form == BytesApart::by_merges) {
    reserve_joined_bytes(emitter);
    emitter.reserve_vector(order_of_merged());
    return;
  }
  for (const BytePart part : {BytePart::lower, BytePart::upper}) {
    emitter.reserve_vector(every_second_byte(part));
  }
}

OwnedVector emit_bytes_of_lanes(LaneEmitter& emitter, const Xmm& low, const Xmm& high,
                                BytePart part, BytesApart form) {
  if (form == BytesApart::by_merges) {
    return part == BytePart::upper ? emit_join_upper_bytes(emitter, low, high)
                                   : emit_join_lower_bytes(emitter, low, high);
  }
  OwnedVector joined = emitter.scratch();
  const Xbyak::Zmm to = zmm(joined.as(vector_bits));
  emitter.code().vmovdqa64(to, zmm(low));
  OwnedVector fallback;
  emitter.code().vpermt2b(to, zmm(emitter.vector(every_second_byte(part), fallback)), zmm(high));
  return joined;
}

void emit_in_order(LaneEmitter& emitter, const Xmm& bytes, BytesApart form) {
  if (form == BytesApart::by_permutation) return;
  OwnedVector fallback;
  emitter.code().vpermb(zmm(bytes), zmm(emitter.vector(order_of_merged(), fallback)), zmm(bytes));
}

}  // namespace castor::jit
