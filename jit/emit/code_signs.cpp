// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/code_signs.hpp"

#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

CodeSigns::CodeSigns(ElementType element)
    : has_one_zero_(info(element).format.specials == FloatSpecials::fnuz),
      code_bits_(bits_of(element)) {}

std::vector<uint8_t> CodeSigns::sign_bits(int lane_bits) const {
  const int bit = 1 << (code_bits_ - 1);
  return lane_bits == 8 ? vector_constant<uint8_t>(256, [&](int) { return bit; })
                        : vector_constant<uint32_t>(256, [&](int) { return bit; });
}

void CodeSigns::reserve_constants(LaneEmitter& emitter, int lane_bits) const {
  emitter.reserve_vector(sign_bits(lane_bits));
}

void CodeSigns::emit(LaneEmitter& emitter, const Xmm& codes, const Xmm& signs,
                     int lane_bits) const {
  Assembler& code = emitter.code();
  const auto distance = static_cast<uint8_t>(lane_bits - code_bits_);
  if (distance != 0) {
    lane_bits == 8 ? code.vpsrlw(signs, signs, distance) : code.vpsrld(signs, signs, distance);
  }
  code.vpand(signs, signs, emitter.last_vector(sign_bits(lane_bits), width_of(signs)));
  if (has_one_zero_) {
    const OwnedVector scratch = emitter.scratch();
    const Xmm is_zero = scratch.as(width_of(codes));
    code.vpxor(is_zero, is_zero, is_zero);
    lane_bits == 8 ? code.vpcmpeqb(is_zero, is_zero, codes)
                   : code.vpcmpeqd(is_zero, is_zero, codes);
    code.vpandn(signs, is_zero, signs);
  }
  code.vpor(codes, codes, signs);
}

}  // namespace castor::jit
