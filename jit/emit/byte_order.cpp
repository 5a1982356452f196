// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/byte_order.hpp"

#include <array>

#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

constexpr int vector_bits = 512;
bool has_byte_permute(const LaneEmitter& emitter) {
  return emitter.target().supports(Feature::avx512_vbmi);
}

}  // namespace

ByteOrder::ByteOrder(int (*source)(int))
    : whole_(vector_constant<uint8_t>(vector_bits, source)), in_parts_(64), of_lanes_(64) {
  std::array<int, 4> taken = {};  // 32-bit lanes of each 128 bits
  for (int lane = 0; lane < 16; ++lane) {
    const int part = source(4 * lane) / 16;
    const int at = 4 * part + taken[static_cast<size_t>(part)]++;
    of_lanes_[static_cast<size_t>(4 * lane)] = static_cast<uint8_t>(at);
    for (int i = 0; i < 4; ++i) {
      in_parts_[static_cast<size_t>(4 * at + i)] = static_cast<uint8_t>(source(4 * lane + i) % 16);
    }
  }
}

void ByteOrder::reserve_constants(LaneEmitter& emitter) const {
  if (has_byte_permute(emitter)) return emitter.reserve_vector(whole_);
  emitter.reserve_vector(in_parts_);
  emitter.reserve_vector(of_lanes_);
}

void ByteOrder::emit(LaneEmitter& emitter, const Xmm& bytes) const {
  Assembler& code = emitter.code();
  const Xbyak::Zmm to = zmm(bytes);
  OwnedVector fallback;
  if (has_byte_permute(emitter)) {
    return code.vpermb(to, zmm(emitter.vector(whole_, fallback)), to);
  }
  code.vpshufb(to, to, zmm(emitter.vector(in_parts_, fallback)));
  OwnedVector lanes_fallback;
  code.vpermd(to, zmm(emitter.vector(of_lanes_, lanes_fallback)), to);
}

}  // namespace castor::jit
