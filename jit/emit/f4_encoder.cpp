// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/f4_encoder.hpp"

#include <bit>
#include <cmath>
#include <memory>

#include "ir/numerics/scalar.hpp"
#include "jit/emit/vector_constant.hpp"
#include "jit/memory/published.hpp"

namespace castor::jit {

namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint8_t a_where_c_else_b = 0xe4;  // vpternlog

constexpr int one = 1;
constexpr int magnitude_bits = 0x07;
constexpr int code_bits = 4;

/// The code of a number that is not negative, or of one that is above it but below all others that
/// a table tells apart.
int code_of(double number, bool is_above) {
  constexpr double little_more = 1 + 0x1p-30;
  const auto bits = std::bit_cast<uint64_t>(is_above ? number * little_more : number);
  return static_cast<int>(numerics::convert(bits, ElementType::f64, ElementType::f4e2m1, {}));
}

Bytes table_of(int (*entry)(int), int first = 0) {
  return vector_constant<uint8_t>(512, [&](int i) { return entry(first + i); });
}

// ---- f16: the upper byte has the sign, the exponent and two bits of the mantissa. All that is
// halfway between codes has zeros below these: so a code follows from the upper byte and from
// whether the lower one is zero.

/// By the upper byte without the sign: twice the code of a number whose lower byte is zero, and one
/// more where other lower bytes have the next code.
int upper_entry(int upper) {
  const int exponent = upper >> 2;
  if (exponent == 0) return 0;
  const double number = std::ldexp(1 + (upper & 3) / 4.0, exponent - 15);
  return code_of(number, false) + code_of(number, true);
}

// ---- bf16: exponents of numbers that are not rounded to zero or to the largest are few, and of
// the mantissa it matters which quarter it is in, and whether it is there at the beginning.

constexpr int zero_exponent = 124;  ///< all numbers that have it, or less, become zero
constexpr int last_exponent = 7;    ///< above it, from where all become the largest

/// By the mantissa, which is the lower byte without its highest bit: eight times its class.
int mantissa_class(int mantissa) { return (2 * (mantissa >> 5) + (mantissa % 32 != 0)) * 8; }

/// By the class of the mantissa, and the exponent less `zero_exponent`, from 0 to `last_exponent`.
int class_entry(int index) {
  const double mantissa = 1 + (index >> 4) / 4.0;
  return code_of(std::ldexp(mantissa, (index & last_exponent) + zero_exponent - 127),
                 (index >> 3 & 1) != 0);
}

/// Made once a process: an emitter asks for them at each vector.
struct Tables {
  Bytes low_uppers = table_of(upper_entry), high_uppers = table_of(upper_entry, 64);
  Bytes low_mantissas = table_of(mantissa_class), high_mantissas = table_of(mantissa_class, 64);
  Bytes classes = table_of(class_entry);
};

const Tables& tables() {
  static constinit Published<const Tables> made;
  return made.get([] { return std::make_unique<const Tables>(); });
}

}  // namespace

F4Encoder::F4Encoder(ElementType from)
    : MergedBytesEncoder(
          from == ElementType::f16
              ? std::vector<Bytes>{bytes(one), bytes(magnitude_bits), tables().low_uppers,
                                   tables().high_uppers}
              : std::vector<Bytes>{bytes(one), bytes(magnitude_bits), bytes(zero_exponent),
                                   bytes(last_exponent), tables().low_mantissas,
                                   tables().high_mantissas, tables().classes},
          code_bits),
      from_f16_(from == ElementType::f16) {}

/// The codes of magnitudes, in the three lowest bits of each byte, and the signs above.
OwnedVector F4Encoder::emit_codes(LaneEmitter& emitter, OwnedVector upper,
                                  OwnedVector lower) const {
  Assembler& code = emitter.code();
  OwnedVector result = emitter.scratch();
  const OwnedVector work = emitter.scratch();
  const OwnedMask scratch_mask = emitter.scratch_mask();
  const Xbyak::Zmm codes = register_of(result);
  const Xbyak::Zmm high = register_of(upper);
  const Xbyak::Zmm low = register_of(lower);
  const Xbyak::Zmm exponent = register_of(work);
  const Xbyak::Opmask mask = scratch_mask.get();
  OwnedVector fallback;
  OwnedVector second_fallback;
  const auto of = [&](const Bytes& each) { return constant(emitter, each, fallback); };
  const auto second = [&](const Bytes& each) { return constant(emitter, each, second_fallback); };
  if (from_f16_) {
    code.vptestmb(mask, low, low);
    code.vmovdqa64(codes, high);
    code.vpermi2b(codes, of(tables().low_uppers), second(tables().high_uppers));
    code.vpaddb(codes | mask, codes, of(bytes(one)));
    code.vpsrlw(codes, codes, 1);
  } else {
    code.vpmovb2m(mask, low);  // the exponent's last bit
    code.vpaddb(exponent, high, high);
    code.vpaddb(exponent | mask, exponent, of(bytes(one)));
    code.vpsubusb(exponent, exponent, of(bytes(zero_exponent)));
    code.vpminub(exponent, exponent, of(bytes(last_exponent)));
    code.vmovdqa64(codes, low);
    code.vpermi2b(codes, of(tables().low_mantissas), second(tables().high_mantissas));
    code.vpord(codes, codes, exponent);
    code.vpermb(codes, codes, of(tables().classes));
  }
  code.vpsrlw(high, high, 4);
  code.vpternlogd(codes, high, of(bytes(magnitude_bits)), a_where_c_else_b);
  return result;
}

}  // namespace castor::jit
