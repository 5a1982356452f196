// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/f4_encoder.hpp"

#include "jit/emit/bytes_of_lanes.hpp"
#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

constexpr int vector_bits = 512;
constexpr uint8_t a_where_c_else_b = 0xe4;  // vpternlog

constexpr int one = 1;
constexpr int magnitude_bits = 0x07;
constexpr int code_bits = 0x0f;

/// The code of a number that is not negative, or of one that is above it but below all others that
/// a table tells apart.
constexpr int code_of(double number, bool is_above) {
  constexpr double halfway[] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5};
  int rounded = 0;
  for (int below = 0; below < 7; ++below) {
    const bool rounds_up = below % 2 == 1 || is_above;  // ties go to even codes
    rounded += number > halfway[below] || (number == halfway[below] && rounds_up) ? 1 : 0;
  }
  return rounded;
}

constexpr double power(int exponent) {
  double result = 1;
  for (; exponent > 0; --exponent) result *= 2;
  for (; exponent < 0; ++exponent) result /= 2;
  return result;
}

// ---- f16: the upper byte has the sign, the exponent and two bits of the mantissa. All that is
// halfway between codes has zeros below these: so a code follows from the upper byte and from
// whether the lower one is zero.

/// By the upper byte without the sign: twice the code of a number whose lower byte is zero, and one
/// more where other lower bytes have the next code.
int upper_entry(int upper) {
  const int exponent = upper >> 2;
  if (exponent == 0) return 0;
  const double number = (1 + (upper & 3) / 4.0) * power(exponent - 15);
  return code_of(number, false) + code_of(number, true);
}

// ---- bf16: exponents of numbers that are not rounded to zero or to the largest are few, and of
// the mantissa it matters which quarter it is in, and whether it is there at the beginning.

constexpr int zero_exponent = 124;  ///< all numbers that have it, or less, become zero
constexpr int last_class = 7;

/// By the mantissa, which is the lower byte without its highest bit: eight times its class.
int mantissa_class(int mantissa) { return (2 * (mantissa >> 5) + (mantissa % 32 != 0)) * 8; }

/// By the class of the mantissa, and the exponent less `zero_exponent`, from 0 to 7.
int class_entry(int index) {
  const double quarters = (index >> 4) / 4.0;
  return code_of((1 + quarters) * power((index & 7) + zero_exponent - 127), (index >> 3 & 1) != 0);
}

std::vector<uint8_t> half_of_table(int (*entry)(int), int first) {
  return vector_constant<uint8_t>(vector_bits, [&](int i) { return entry(first + i); });
}

std::vector<uint8_t> bytes(int value) { return repeated_constant<uint8_t>(vector_bits, value); }

}  // namespace

F4Encoder::F4Encoder(ElementType from) : from_f16_(from == ElementType::f16), order_(merged_byte) {}

void F4Encoder::reserve_constants(LaneEmitter& emitter) const {
  reserve_bytes_of_lanes(emitter, BytesApart::by_merges);
  for (const int value : {one, magnitude_bits, code_bits}) emitter.reserve_vector(bytes(value));
  const auto by_half = from_f16_ ? upper_entry : mantissa_class;
  for (const int first : {0, 64}) emitter.reserve_vector(half_of_table(by_half, first));
  if (!from_f16_) {
    emitter.reserve_vector(half_of_table(class_entry, 0));
    for (const int value : {zero_exponent, last_class}) emitter.reserve_vector(bytes(value));
  }
  order_.reserve_constants(emitter);
}

OwnedVector F4Encoder::emit_encode(LaneEmitter& emitter, const Xmm& low, const Xmm& high) const {
  Assembler& code = emitter.code();
  const OwnedVector upper =
      emit_bytes_of_lanes(emitter, low, high, BytePart::upper, BytesApart::by_merges);
  const OwnedVector lower =
      emit_bytes_of_lanes(emitter, low, high, BytePart::lower, BytesApart::by_merges);
  OwnedVector result = emitter.scratch();
  const Xbyak::Zmm codes = zmm(result.as(vector_bits));
  const Xbyak::Zmm signs = zmm(upper.as(vector_bits));
  const auto emit = from_f16_ ? &F4Encoder::emit_f16 : &F4Encoder::emit_bf16;
  (this->*emit)(emitter, codes, signs, zmm(lower.as(vector_bits)));
  OwnedVector fallback;
  code.vpsrlw(signs, signs, 4);
  code.vpternlogd(codes, signs, zmm(emitter.vector(bytes(magnitude_bits), fallback)),
                  a_where_c_else_b);
  code.vpandd(codes, codes, zmm(emitter.vector(bytes(code_bits), fallback)));
  order_.emit(emitter, codes);
  return result;
}

/// The magnitude's code in the three lowest bits of each byte.
void F4Encoder::emit_f16(LaneEmitter& emitter, const Xbyak::Zmm& codes, const Xbyak::Zmm& upper,
                         const Xbyak::Zmm& lower) const {
  Assembler& code = emitter.code();
  const OwnedMask has_more = emitter.scratch_mask();
  OwnedVector first;
  OwnedVector second;
  const Xbyak::Zmm table = zmm(emitter.vector(half_of_table(upper_entry, 0), first));
  const Xbyak::Zmm later = zmm(emitter.vector(half_of_table(upper_entry, 64), second));
  code.vptestmb(has_more.get(), lower, lower);
  code.vmovdqa64(codes, upper);
  code.vpermi2b(codes, table, later);
  code.vpaddb(codes | has_more.get(), codes, zmm(emitter.vector(bytes(one), first)));
  code.vpsrlw(codes, codes, 1);
}

/// The same.
void F4Encoder::emit_bf16(LaneEmitter& emitter, const Xbyak::Zmm& codes, const Xbyak::Zmm& upper,
                          const Xbyak::Zmm& lower) const {
  Assembler& code = emitter.code();
  const OwnedMask is_odd = emitter.scratch_mask();
  const OwnedVector work = emitter.scratch();
  const Xbyak::Zmm exponent = zmm(work.as(vector_bits));
  OwnedVector first;
  OwnedVector second;
  code.vpmovb2m(is_odd.get(), lower);
  code.vpaddb(exponent, upper, upper);
  code.vpaddb(exponent | is_odd.get(), exponent, zmm(emitter.vector(bytes(one), first)));
  code.vpsubusb(exponent, exponent, zmm(emitter.vector(bytes(zero_exponent), first)));
  code.vpminub(exponent, exponent, zmm(emitter.vector(bytes(last_class), first)));
  const Xbyak::Zmm table = zmm(emitter.vector(half_of_table(mantissa_class, 0), first));
  const Xbyak::Zmm later = zmm(emitter.vector(half_of_table(mantissa_class, 64), second));
  code.vmovdqa64(codes, lower);
  code.vpermi2b(codes, table, later);
  code.vpord(codes, codes, exponent);
  code.vpermb(codes, codes, zmm(emitter.vector(half_of_table(class_entry, 0), first)));
}

}  // namespace castor::jit
