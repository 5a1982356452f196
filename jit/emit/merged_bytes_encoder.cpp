// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/merged_bytes_encoder.hpp"

#include <utility>

#include "jit/emit/bytes_of_lanes.hpp"
#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

MergedBytesEncoder::MergedBytesEncoder(std::vector<std::vector<uint8_t>> constants)
    : constants_(std::move(constants)), order_(merged_byte) {}

void MergedBytesEncoder::reserve_constants(LaneEmitter& emitter) const {
  reserve_bytes_of_lanes(emitter, BytesApart::by_merges);
  for (const std::vector<uint8_t>& each : constants_) emitter.reserve_vector(each);
  order_.reserve_constants(emitter);
}

OwnedVector MergedBytesEncoder::emit_encode(LaneEmitter& emitter, const Xmm& low,
                                            const Xmm& high) const {
  OwnedVector upper =
      emit_bytes_of_lanes(emitter, low, high, BytePart::upper, BytesApart::by_merges);
  OwnedVector lower =
      emit_bytes_of_lanes(emitter, low, high, BytePart::lower, BytesApart::by_merges);
  OwnedVector codes = emit_codes(emitter, std::move(upper), std::move(lower));
  order_.emit(emitter, codes.as(vector_bits));
  return codes;
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
