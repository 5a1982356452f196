// SPDX-License-Identifier: Apache-2.0
// Stores: how lanes become elements.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "ir/numerics/scalar.hpp"
#include "ir/types/nf4.hpp"
#include "tools/prove/lane/step.hpp"

namespace castor::prove {

using jit::Narrowing;
using jit::ThresholdTable;

namespace {

/// The lane clamped, as a signed number, to `bits` bits that are signed or not.
Term clamped(const Term& lane, int bits, bool is_signed) {
  if (bits >= lane.width() && is_signed) return lane;
  const Bits high = is_signed ? low_mask(bits - 1) : low_mask(std::min(bits, lane.width() - 1));
  const Bits low = is_signed ? ~low_mask(bits - 1) : 0;
  return max_signed(min_signed(lane, like(lane, high)), like(lane, low));
}

/// Bits to which a store clamps: elements narrower than a byte are codes unless they are integers.
int clamped_bits(ElementType element) {
  return is_integer(element) ? bits_of(element) : jit::lane_bits_of(element);
}

Term requiring_fit(LaneStep& step, ElementType element, bool is_signed) {
  step.require(equal(step.a, clamped(step.a, bits_of(element), is_signed)));
  return step.a;
}

Term high_half(const Term& lane) { return extract(lane, lane.width() / 2, lane.width() / 2); }

/// The lane holds an i16: the sign in bit 15, the magnitude's code from 7 - mantissa bits on. With
/// one zero, the code has 8 bits, of which the highest is that of NaN.
Term signed_code(LaneStep& step, ElementType element) {
  const Term i16 = truncate(step.a, 16);
  step.require(equal(step.a, extend_sign(i16, step.a.width())));
  const int first = 7 - info(element).format.mantissa_bits;
  const Term sign = bit(i16, 15);
  if (info(element).format.specials != FloatSpecials::fnuz) {
    return concat(sign, extract(i16, first, bits_of(element) - 1));
  }
  const Term code = extract(i16, first, 8);
  const Term is_signed = sign & not_equal(code & 0x7f, like(code, 0));
  return code + concat(is_signed, step.terms.constant(7, 0));
}

/// The code in bits 8 to 15, and the sign in another lane's highest bit; with one zero, a code of 0
/// has none.
Term magnitude_code(LaneStep& step, ElementType element) {
  const int bits = bits_of(element);
  const Term code = extract(step.a, 8, 8);
  step.require(equal(step.a, shift_left(extend_zero(code, step.a.width()), 8)));
  if (!step.b) return truncate(code, bits);
  const bool has_one_zero = info(element).format.specials == FloatSpecials::fnuz;
  const Term bare_sign = bit(step.b, step.b.width() - 1);
  const Term sign = has_one_zero ? bare_sign & not_equal(code, like(code, 0)) : bare_sign;
  return truncate(code, bits) | concat(sign, step.terms.constant(bits - 1, 0));
}

/// f16 to its upper half, nearest even; infinities and NaNs stay.
Term f16_to_e5m2(LaneStep& step) {
  const Term number = truncate(step.a, 16);
  const Term magnitude = magnitude_of(f16_format, number);
  const Term is_special = at_most_unsigned(like(magnitude, f16_format.infinity()), magnitude);
  step.require(~(is_nan(f16_format, number) & equal(number & f16_format.quiet_bit(), 0)));
  const Term upper = extract(number, 8, 8);
  const Term lower = extract(number, 0, 8) | extend_zero(bit(number, 8), 8);
  const Term is_up = ~is_special & less_unsigned(like(lower, 0x80), lower);
  return upper + extend_zero(is_up, 8);
}

/// A code with a sign, which zero and NaN have not.
Term signed_fnuz(const Term& code, const Term& sign) {
  const Term is_number = not_equal(code & like(code, 0x7f), like(code, 0));
  return code | concat(sign & is_number, code.terms().constant(7, 0));
}

/// f16 to f8e5m2fnuz, nearest even: the exponent field is one more, and subnormal numbers count
/// half as much. Infinities and NaNs become the NaN.
Term f16_to_e5m2fnuz(const Term& number) {
  const Term magnitude = extend_zero(extract(number, 0, 15), 16);
  const Term bounded = min_unsigned(magnitude, like(magnitude, f16_format.infinity()));
  const Term rebased = bounded + min_unsigned(bounded, like(bounded, 0x400));
  const Term upper = extract(rebased, 8, 8);
  const Term lower = extract(rebased, 0, 8) | extend_zero(bit(rebased, 8), 8);
  const Term is_up = less_unsigned(like(lower, 0x80), lower);
  return signed_fnuz(upper + extend_zero(is_up, 8), bit(number, 15));
}

/// bf16 to the number of what is halfway between codes that is below, where ties go to even codes.
/// After the last number's code is the NaN's.
Term bf16_to_fnuz(const Term& number, ElementType element) {
  constexpr int nan_code = 0x80;
  const auto value = [&](int code) {
    return std::bit_cast<double>(
        numerics::convert(static_cast<uint64_t>(code), element, ElementType::f64, {}));
  };
  const Term magnitude = extend_zero(extract(number, 0, 15), 16);
  Term code = like(extract(number, 0, 8), 0);
  for (int below = 0; below < nan_code; ++below) {
    const double next =
        below + 1 < nan_code ? value(below + 1) : 2 * value(below) - value(below - 1);
    const double halfway = (value(below) + next) / 2;
    const Term tie = like(magnitude, numerics::convert(std::bit_cast<uint64_t>(halfway),
                                                       ElementType::f64, ElementType::bf16, {}));
    const Term is_up =
        below % 2 == 1 ? at_most_unsigned(tie, magnitude) : less_unsigned(tie, magnitude);
    code = code + extend_zero(is_up, 8);
  }
  return signed_fnuz(code, bit(number, 15));
}

Term fnuz_code(const Term& lane) {
  const Term code = extract(lane, 0, 8);
  return signed_fnuz(code ^ like(code, 0x80), bit(lane, 15));
}

/// A 16-bit float to f4e2m1: the number of what is halfway between codes that is below, where ties
/// go to even codes. NaNs are above all.
Term rounded_to_f4(const Term& number, ElementType from) {
  constexpr double halfway[] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5};
  const Term magnitude = extend_zero(extract(number, 0, 15), 16);
  Term code = like(extract(number, 0, 4), 0);
  for (size_t below = 0; below < std::size(halfway); ++below) {
    const uint64_t bits =
        numerics::convert(std::bit_cast<uint64_t>(halfway[below]), ElementType::f64, from, {});
    const Term tie = like(magnitude, bits);
    const Term is_up =
        below % 2 == 1 ? at_most_unsigned(tie, magnitude) : less_unsigned(tie, magnitude);
    code = code + extend_zero(is_up, 4);
  }
  return code | concat(bit(number, 15), number.terms().constant(3, 0));
}

/// A 16-bit float to nf4: the number of thresholds that it is above. A NaN is above none.
Term rounded_to_nf4(const Term& number, ElementType from) {
  const Term magnitude = extend_zero(extract(number, 0, 15), 16);
  const Term is_negative = bit(number, 15);
  Term code = like(extract(number, 0, 4), 0);
  for (const float threshold : nf4_thresholds) {
    const float size = std::fabs(threshold);
    Bits nearest = numerics::convert(std::bit_cast<uint32_t>(size), ElementType::f32, from, {});
    const auto rounded =
        std::bit_cast<double>(numerics::convert(nearest, from, ElementType::f64, {}));
    // m is above the size from `above` on, and below it up to `below`.
    const Bits above = rounded > double{size} ? nearest : nearest + 1;
    const Bits below = rounded < double{size} ? nearest : nearest - 1;
    const Term is_above = threshold > 0
                              ? ~is_negative & at_most_unsigned(like(magnitude, above), magnitude)
                              : ~is_negative | at_most_unsigned(magnitude, like(magnitude, below));
    code = code + extend_zero(is_above, 4);
  }
  const Bits infinity = from == ElementType::f16 ? f16_format.infinity() : bf16_format.infinity();
  return if_then_else(less_unsigned(like(magnitude, infinity), magnitude), like(code, 0), code);
}

/// bf16 to its exponent, nearest even: what is halfway above 2^-127, whose exponent is 0, has
/// another mantissa than the others.
Term bf16_to_power(const Term& number) {
  const Term exponent = extract(number, 7, 8);
  const Term mantissa = extract(number, 0, 7);
  const Term halves = concat(mantissa, bit(exponent, 0));
  const Term is_least = equal(exponent, like(exponent, 0));
  const Term is_up = if_then_else(is_least, less_unsigned(like(mantissa, 0x60), mantissa),
                                  less_unsigned(like(halves, 0x80), halves));
  const Term largest = like(exponent, 0xfe);
  const Term rounded = exponent + extend_zero(is_up, 8);
  const Term power = if_then_else(at_most_unsigned(largest, exponent), largest, rounded);
  const Term code = if_then_else(bit(number, 15), like(exponent, 0), power);
  return if_then_else(is_nan(bf16_format, number), like(exponent, 0xff), code);
}

/// Codes by the low 9 bits; bit 15 is the sign of all.
Term nine_bits(const jit::ByteTable& table, const Term& number) {
  const Term both = entry_of(table, truncate(number, 8), 16);
  const Term code = if_then_else(bit(number, 8), extract(both, 8, 8), extract(both, 0, 8));
  return code | concat(bit(number, 15), number.terms().constant(7, 0));
}

/// Signed lanes are clamped to the table's index, but for those of 64 bits, which must fit.
Term looked_up_byte(LaneStep& step, const jit::ByteTable& table) {
  if (step.inst.narrowing == Narrowing::look_up_u8) {
    step.require(equal(step.a, clamped(step.a, 8, false)));
    return entry_of(table, truncate(step.a, 8), 8);
  }
  const Term index = clamped(step.a, table.index_bits, true);
  if (step.a.width() == 64) step.require(equal(step.a, index));
  std::vector<uint64_t> codes;
  for (size_t i = 0; i < size_t{1} << table.index_bits; ++i) {
    codes.push_back(table.entries[i] & 0xff);
  }
  return step.terms.table(codes, 8, truncate(index, table.index_bits));
}

/// Lanes as wide as the element are stored as they are; a store of an element narrower than a byte
/// may take its lanes' upper bits for zeros.
Term stored_as_is(LaneStep& step, ElementType element) {
  const bool upper_bits_are_zero = step.inst.narrowing == Narrowing::fits_unsigned ||
                                   step.inst.narrowing == Narrowing::saturate_to_unsigned;
  const Term code = resize_zero(step.a, bits_of(element));
  if (upper_bits_are_zero) step.require(equal(step.a, resize_zero(code, step.a.width())));
  return code;
}

}  // namespace

Term encoded_by_thresholds(const ThresholdTable& table, const Term& number) {
  Terms& terms = number.terms();
  const Term negative = bit(number, 15);
  const Term magnitude = number & 0x7fff;
  const Term is_nan = less_unsigned(like(magnitude, table.infinity), magnitude);
  const Term bounded = min_unsigned(magnitude, like(magnitude, table.max));
  const Term base = like(bounded, table.base);
  const Term from_base = if_then_else(less_unsigned(bounded, base), like(base, 0), bounded - base);
  const Term index = truncate(shift_right(from_base, table.shift), 8);
  const Term low_bits = truncate(number, 8) & low_mask(table.shift);
  const Term bucket = entry_of(table.buckets, index, 16);
  const Term next = at_most_unsigned(extract(bucket, 8, 8), low_bits);
  Term code = extract(bucket, 0, 8) + extend_zero(next, 8);
  const Term constant_nan = terms.constant(8, table.nan_code);
  if (table.nan == ThresholdTable::with_sign) code = if_then_else(is_nan, constant_nan, code);
  if (table.nan == ThresholdTable::with_sign_and_payload) {
    const int below_quiet = table.infinity == 0x7f80 ? 5 : 8;  // bf16, else f16
    code = if_then_else(is_nan, constant_nan ^ extend_zero(bit(number, below_quiet), 8), code);
  }
  const Term sign = if_then_else(negative, terms.constant(8, table.sign_bit), terms.constant(8, 0));
  switch (table.sign) {
    case ThresholdTable::copied: code = code ^ sign; break;
    case ThresholdTable::negative_is_zero:
      code = if_then_else(negative, like(code, 0), code);
      break;
    case ThresholdTable::copied_unless_zero:
      code = if_then_else(equal(code, 0), code, code | sign);
      break;
  }
  return table.nan == ThresholdTable::constant ? if_then_else(is_nan, constant_nan, code) : code;
}

Term encoded_by_class(const jit::ClassTable& table, const Term& number) {
  const Term magnitude = number & 0x7fff;
  const Term is_nan = less_unsigned(like(magnitude, table.infinity), magnitude);
  const Term negative = bit(number, 15);
  const Term classes = entry_of(table.classes, truncate(shift_right(magnitude, 8), 8), 8);
  const Term lower = truncate(number, 8);
  const Term zero = like(lower, 0);
  const Term low_bits = table.low_bits == 0 ? zero : shift_right(lower, 8 - table.low_bits);
  const Term signs = if_then_else(negative, like(lower, table.sign_bit), zero);
  const Term code = entry_of(table.codes, classes | low_bits | signs, 8);
  const bool keeps_negative = table.sign_bit != 0;
  return if_then_else(keeps_negative ? is_nan : is_nan | negative, zero, code);
}

Term stored_element(LaneStep& step, ElementType element) {
  const Term& a = step.a;
  const auto byte_table = [&]() -> const jit::ByteTable& {
    return step.program.tables[static_cast<size_t>(step.inst.table)];
  };
  const auto thresholds = [&]() -> const ThresholdTable& {
    return step.program.threshold_tables[static_cast<size_t>(step.inst.table)];
  };
  const int bits = bits_of(element);
  const auto low = [bits](const Term& wide) { return resize_zero(wide, bits); };
  const bool as_is = a.width() == jit::lane_bits_of(element) && !jit::encodes(step.inst.narrowing);
  if (as_is && !jit::looks_up(step.inst.narrowing)) return stored_as_is(step, element);
  switch (step.inst.narrowing) {
    case Narrowing::look_up_16: return entry_of(byte_table(), a, 16);
    case Narrowing::look_up_upper_16:
      return concat(entry_of(byte_table(), a, 16), step.terms.constant(16, 0));
    case Narrowing::look_up_i16: return extend_sign(entry_of(byte_table(), a, 16), bits);
    case Narrowing::encode_16_bits:
      return low(encoded_by_thresholds(thresholds(), truncate(a, 16)));
    case Narrowing::encode_high_half: return low(encoded_by_thresholds(thresholds(), high_half(a)));
    case Narrowing::encode_by_class: {
      const auto& table = step.program.class_tables[static_cast<size_t>(step.inst.table)];
      return low(encoded_by_class(table, truncate(a, 16)));
    }
    case Narrowing::signed_code: return signed_code(step, element);
    case Narrowing::f16_to_e5m2: return f16_to_e5m2(step);
    case Narrowing::f16_to_e5m2fnuz: return f16_to_e5m2fnuz(truncate(a, 16));
    case Narrowing::bf16_to_fnuz: return bf16_to_fnuz(truncate(a, 16), element);
    case Narrowing::fnuz_code: return fnuz_code(truncate(a, 16));
    case Narrowing::f16_to_f4: return low(rounded_to_f4(truncate(a, 16), ElementType::f16));
    case Narrowing::bf16_to_f4: return low(rounded_to_f4(truncate(a, 16), ElementType::bf16));
    case Narrowing::f16_to_nf4: return low(rounded_to_nf4(truncate(a, 16), ElementType::f16));
    case Narrowing::bf16_to_nf4: return low(rounded_to_nf4(truncate(a, 16), ElementType::bf16));
    case Narrowing::bf16_to_power: return low(bf16_to_power(truncate(a, 16)));
    case Narrowing::high_half_to_power: return low(bf16_to_power(high_half(a)));
    case Narrowing::magnitude_code: return magnitude_code(step, element);
    case Narrowing::look_up_i8:
    case Narrowing::look_up_u8: return low(looked_up_byte(step, byte_table()));
    case Narrowing::look_up_9_bits: return low(nine_bits(byte_table(), truncate(a, 16)));
    case Narrowing::truncate: return low(a);
    case Narrowing::high_half: return low(high_half(a));
    case Narrowing::saturate_to_signed: return low(clamped(a, clamped_bits(element), true));
    case Narrowing::saturate_to_unsigned: return low(clamped(a, clamped_bits(element), false));
    case Narrowing::fits_signed: return low(requiring_fit(step, element, true));
    case Narrowing::fits_unsigned: return low(requiring_fit(step, element, false));
    case Narrowing::from_unsigned: return low(min_unsigned(a, like(a, low_mask(bits))));
  }
  return {};
}

}  // namespace castor::prove
