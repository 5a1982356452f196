// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/e5m2_encoder.hpp"

#include "jit/emit/bytes_of_lanes.hpp"
#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

constexpr int vector_bits = 512;
constexpr uint8_t a_or_b_and_c = 0xf8;     // vpternlog
constexpr uint8_t compare_less_equal = 2;  // vpcmpu
constexpr uint8_t compare_not_less_equal = 6;

using namespace e5m2;

}  // namespace

E5m2Encoder::E5m2Encoder() : order_(merged_byte) {}

void E5m2Encoder::reserve_constants(LaneEmitter& emitter) const {
  reserve_bytes_of_lanes(emitter, BytesApart::by_merges);
  for (const int value : {last_bit, magnitude, infinity, half}) {
    emitter.reserve_vector(repeated_constant<uint8_t>(vector_bits, value));
  }
  order_.reserve_constants(emitter);
}

/// A number is rounded up where what is dropped is more than half a unit, or half with an odd code:
/// with the code's last bit beneath it, that is one comparison. Infinity and NaNs stay.
OwnedVector E5m2Encoder::emit_encode(LaneEmitter& emitter, const Xmm& low, const Xmm& high) const {
  Assembler& code = emitter.code();
  OwnedVector codes =
      emit_bytes_of_lanes(emitter, low, high, BytePart::upper, BytesApart::by_merges);
  const OwnedVector dropped =
      emit_bytes_of_lanes(emitter, low, high, BytePart::lower, BytesApart::by_merges);
  const OwnedVector work = emitter.scratch();
  const Xbyak::Zmm upper = zmm(codes.as(vector_bits));
  const Xbyak::Zmm lower = zmm(dropped.as(vector_bits));
  const Xbyak::Zmm size = zmm(work.as(vector_bits));
  const OwnedMask rounds_up = emitter.scratch_mask();
  const auto constant = [&](int value, OwnedVector& fallback) {
    return zmm(emitter.vector(repeated_constant<uint8_t>(vector_bits, value), fallback));
  };
  OwnedVector one_fallback;
  const Xbyak::Zmm one = constant(last_bit, one_fallback);
  code.vpternlogd(lower, upper, one, a_or_b_and_c);
  {
    OwnedVector fallback;
    code.vpandd(size, upper, constant(magnitude, fallback));
  }
  {
    OwnedVector fallback;
    code.vpcmpub(rounds_up.get(), size, constant(infinity, fallback), compare_less_equal);
  }
  {
    OwnedVector fallback;
    code.vpcmpub(rounds_up.get() | rounds_up.get(), lower, constant(half, fallback),
                 compare_not_less_equal);
  }
  code.vpaddb(upper | rounds_up.get(), upper, one);
  order_.emit(emitter, upper);
  return codes;
}

}  // namespace castor::jit
