// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/fnuz_encoder.hpp"

#include <array>
#include <memory>

#include "jit/lower/small_values.hpp"
#include "jit/memory/published.hpp"

namespace castor::jit {

namespace {

constexpr uint8_t a_where_c_else_b = 0xe4;     // vpternlog
constexpr uint8_t a_or_b_and_c = 0xf8;         // vpternlog
constexpr uint8_t compare_not_less_equal = 6;  // vpcmpu

constexpr int last_bit = 1;
constexpr int magnitude = 0x7f;
constexpr int exponent = 0x7c;  ///< f16's field, in the upper byte
constexpr int exponent_unit = 4;
/// The sign's bit; the NaN's code; half a unit of the codes, in the lower byte of f16.
constexpr int highest_bit = 0x80;

/// Codes that are neither zero nor NaN get the sign that `signs`, which is overwritten, has in its
/// highest bit.
void emit_signs(LaneEmitter& emitter, const Xbyak::Zmm& codes, const Xbyak::Zmm& signs,
                const Xbyak::Zmm& magnitudes, const Xbyak::Zmm& sign_bit) {
  const OwnedMask has_sign = emitter.scratch_mask();
  emitter.code().vptestmb(has_sign.get(), codes, magnitudes);
  emitter.code().vpandd(signs, signs, sign_bit);
  emitter.code().vpaddb(codes | has_sign.get(), codes, signs);
}

}  // namespace

FnuzEncoder::FnuzEncoder() : MergedBytesEncoder({bytes(magnitude), bytes(highest_bit)}) {}

OwnedVector FnuzEncoder::emit_codes(LaneEmitter& emitter, OwnedVector upper,
                                    OwnedVector lower) const {
  OwnedVector fallback;
  OwnedVector second_fallback;
  const Xbyak::Zmm codes = register_of(lower);
  const Xbyak::Zmm sign_bit = constant(emitter, bytes(highest_bit), fallback);
  emitter.code().vpxord(codes, codes, sign_bit);
  emit_signs(emitter, codes, register_of(upper),
             constant(emitter, bytes(magnitude), second_fallback), sign_bit);
  return lower;
}

E5m2FnuzEncoder::E5m2FnuzEncoder()
    : MergedBytesEncoder({bytes(last_bit), bytes(magnitude), bytes(exponent), bytes(exponent_unit),
                          bytes(highest_bit)}) {}

/// A number's upper byte has the code of its magnitude, less a unit of the exponent; subnormal ones
/// are doubled instead. What is dropped is compared as in E5m2Encoder. Overflow is carried to the
/// NaN's code, and what infinities and NaNs become is cut off there.
OwnedVector E5m2FnuzEncoder::emit_codes(LaneEmitter& emitter, OwnedVector upper,
                                        OwnedVector lower) const {
  Assembler& code = emitter.code();
  OwnedVector result = emitter.scratch();
  const OwnedVector work = emitter.scratch();
  const Xbyak::Zmm codes = register_of(result);
  const Xbyak::Zmm size = register_of(work);
  const Xbyak::Zmm signs = register_of(upper);
  const Xbyak::Zmm dropped = register_of(lower);
  OwnedVector one_fallback;
  OwnedVector high_fallback;
  OwnedVector fallback;
  const Xbyak::Zmm one = constant(emitter, bytes(last_bit), one_fallback);
  const Xbyak::Zmm high = constant(emitter, bytes(highest_bit), high_fallback);
  const auto all = [&](int value) { return constant(emitter, bytes(value), fallback); };
  const OwnedMask subnormal_mask = emitter.scratch_mask();
  const OwnedMask carry_mask = emitter.scratch_mask();
  const Xbyak::Opmask subnormal = subnormal_mask.get();
  const Xbyak::Opmask carry = carry_mask.get();
  code.vpandd(size, signs, all(magnitude));
  code.vptestnmb(subnormal, size, all(exponent));
  code.vptestmb(carry | subnormal, dropped, high);
  code.vpaddb(codes, size, all(exponent_unit));
  code.vpaddb(codes | subnormal, size, size);
  code.vpaddb(codes | carry, codes, one);
  code.vpaddb(dropped | subnormal, dropped, dropped);
  code.vpternlogd(dropped, codes, one, a_or_b_and_c);
  code.vpcmpub(carry, dropped, high, compare_not_less_equal);
  code.vpaddb(codes | carry, codes, one);
  code.vpminub(codes, codes, high);
  emit_signs(emitter, codes, signs, all(magnitude), high);
  return result;
}

namespace {

/// What the code of a bf16 is made of. The upper byte has the exponent but for its last bit: that
/// is the number of a pair of exponents. Pairs of normal numbers give codes as they stand; the last
/// bit and the mantissa's upper bits, which are the lower byte's, index tables of codes beside
/// them, and smaller pairs have tables of their own.
struct Bf16Codes {
  static constexpr int entries = 64;
  int mantissa_bits = 0;
  int first_pair = 0;   ///< it and what is less become zero
  int normal_pair = 0;  ///< the least that has normal numbers
  std::array<uint8_t, entries> codes = {};
  /// The last lower byte that has the code; those above have the next one.
  std::array<uint8_t, entries> last = {};

  /// Bits of the lower byte below those that index tables.
  int low_bits() const { return 7 - mantissa_bits; }
  /// How much a pair counts, as a shift.
  int pair_shift() const { return mantissa_bits + 1; }
  int index_mask() const { return (1 << pair_shift()) - 1; }
  /// The first number of pairs, counted from the normal ones on, whose codes are the NaN's or
  /// above.
  int overflowing_pairs() const { return highest_bit >> pair_shift(); }
};

std::unique_ptr<const Bf16Codes> make_codes(ElementType to) {
  const FloatFormat& format = info(to).format;
  auto made = std::make_unique<Bf16Codes>();
  made->mantissa_bits = format.mantissa_bits;
  const int normal_exponent = 127 + 1 - format.bias;
  const int first_exponent = normal_exponent - format.mantissa_bits - 2;
  made->normal_pair = normal_exponent / 2;
  made->first_pair = (first_exponent - 1) / 2;  // both of its exponents' numbers become zero
  const int end = 1 << made->low_bits();
  const int pairs = made->normal_pair - made->first_pair + 1;
  for (int i = 0; i < pairs << made->pair_shift(); ++i) {
    const int first = (made->first_pair << 8) + (i << made->low_bits());
    const auto code = [&](int low) {
      return converted_code(first + low, ElementType::bf16, to, {});
    };
    int last = 0;
    while (last + 1 < end && code(last + 1) == code(0)) ++last;
    made->codes[static_cast<size_t>(i)] = static_cast<uint8_t>(code(0));
    made->last[static_cast<size_t>(i)] = static_cast<uint8_t>(first + last);
  }
  return made;
}

/// Made once a process: an emitter asks for them at each vector.
const Bf16Codes& bf16_codes(ElementType to) {
  static constinit Published<const Bf16Codes> of_e4m3;
  static constinit Published<const Bf16Codes> of_e5m2;
  Published<const Bf16Codes>& made = to == ElementType::f8e4m3fnuz ? of_e4m3 : of_e5m2;
  return made.get([to] { return make_codes(to); });
}

std::vector<uint8_t> vector_of(const std::array<uint8_t, Bf16Codes::entries>& table) {
  return {table.begin(), table.end()};
}

}  // namespace

Bf16FnuzEncoder::Bf16FnuzEncoder(ElementType to)
    : MergedBytesEncoder([to] {
        const Bf16Codes& of = bf16_codes(to);
        std::vector<std::vector<uint8_t>> constants = {vector_of(of.codes), vector_of(of.last)};
        for (const int value :
             {last_bit, magnitude, highest_bit, of.first_pair, of.normal_pair,
              of.normal_pair - of.first_pair, of.overflowing_pairs(), of.index_mask()}) {
          constants.push_back(bytes(value));
        }
        return constants;
      }()),
      to_(to) {}

/// Overflow is carried to the NaN's code, and cut off there.
OwnedVector Bf16FnuzEncoder::emit_codes(LaneEmitter& emitter, OwnedVector upper,
                                        OwnedVector lower) const {
  Assembler& code = emitter.code();
  const Bf16Codes& of = bf16_codes(to_);
  OwnedVector result = emitter.scratch();
  const OwnedVector first_work = emitter.scratch();
  const OwnedVector second_work = emitter.scratch();
  const OwnedMask next_mask = emitter.scratch_mask();
  const Xbyak::Opmask has_next = next_mask.get();
  const Xbyak::Zmm codes = register_of(result);
  const Xbyak::Zmm pair = register_of(first_work);
  const Xbyak::Zmm work = register_of(second_work);
  const Xbyak::Zmm low = register_of(lower);
  OwnedVector fallback;
  OwnedVector second_fallback;
  const auto all = [&](int value) { return constant(emitter, bytes(value), fallback); };
  const auto table = [&](const std::array<uint8_t, Bf16Codes::entries>& entries) {
    return constant(emitter, vector_of(entries), fallback);
  };
  const auto shift = static_cast<uint8_t>(of.pair_shift());
  code.vpandd(pair, register_of(upper), all(magnitude));
  // By tables: pairs up to the first normal one.
  code.vpsubusb(work, pair, all(of.first_pair));
  code.vpminub(work, work, all(of.normal_pair - of.first_pair));
  code.vpsllw(work, work, shift);
  code.vpsrlw(codes, low, static_cast<uint8_t>(of.low_bits()));
  code.vpternlogd(codes, work, all(of.index_mask()), a_where_c_else_b);
  code.vpermb(work, codes, table(of.last));
  code.vpcmpub(has_next, low, work, compare_not_less_equal);
  code.vpermb(codes, codes, table(of.codes));
  // As they stand: those above.
  code.vpsubusb(pair, pair, all(of.normal_pair));
  code.vpminub(pair, pair, all(of.overflowing_pairs()));
  code.vpsllw(pair, pair, shift);
  code.vpaddb(codes, codes, pair);
  code.vpaddb(codes | has_next, codes, all(last_bit));
  const Xbyak::Zmm high = constant(emitter, bytes(highest_bit), second_fallback);
  code.vpminub(codes, codes, high);
  emit_signs(emitter, codes, register_of(upper), all(magnitude), high);
  return result;
}

}  // namespace castor::jit
