// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/e5m2_encoder.hpp"

namespace castor::jit {

namespace {

constexpr uint8_t a_or_b_and_c = 0xf8;     // vpternlog
constexpr uint8_t compare_less_equal = 2;  // vpcmpu
constexpr uint8_t compare_not_less_equal = 6;

using namespace e5m2;

}  // namespace

E5m2Encoder::E5m2Encoder()
    : MergedBytesEncoder({bytes(last_bit), bytes(magnitude), bytes(infinity), bytes(half)}) {}

/// A number is rounded up where what is dropped is more than half a unit, or half with an odd code:
/// with the code's last bit beneath it, that is one comparison. Infinity and NaNs stay.
OwnedVector E5m2Encoder::emit_codes(LaneEmitter& emitter, OwnedVector upper,
                                    OwnedVector lower) const {
  Assembler& code = emitter.code();
  const OwnedVector work = emitter.scratch();
  const Xbyak::Zmm codes = register_of(upper);
  const Xbyak::Zmm dropped = register_of(lower);
  const Xbyak::Zmm size = register_of(work);
  const OwnedMask rounds_up = emitter.scratch_mask();
  OwnedVector one_fallback;
  OwnedVector fallback;
  const Xbyak::Zmm one = constant(emitter, bytes(last_bit), one_fallback);
  const auto all = [&](int value) { return constant(emitter, bytes(value), fallback); };
  code.vpternlogd(dropped, codes, one, a_or_b_and_c);
  code.vpandd(size, codes, all(magnitude));
  code.vpcmpub(rounds_up.get(), size, all(infinity), compare_less_equal);
  code.vpcmpub(rounds_up.get() | rounds_up.get(), dropped, all(half), compare_not_less_equal);
  code.vpaddb(codes | rounds_up.get(), codes, one);
  return upper;
}

}  // namespace castor::jit
