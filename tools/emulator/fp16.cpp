// SPDX-License-Identifier: Apache-2.0
#include "tools/emulator/fp16.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

namespace castor::emulator {

namespace {

uint16_t half(uint64_t bits) { return static_cast<uint16_t>(bits); }
uint64_t quiet(uint16_t nan) { return nan | half_quiet; }

// ---- Arithmetic: of NaN operands the first one, made quiet.

/// A result that may be an invalid operation's.
uint64_t rounded(long double exact, const Lane& lane) {
  return std::isnan(exact) ? half_default_nan : rounded_half(exact, lane.rounding);
}

template <class Operation>
uint64_t binary(const Lane& lane, Operation operation) {
  for (const uint64_t bits : {lane.a, lane.b}) {
    if (is_nan(half(bits))) return quiet(half(bits));
  }
  return rounded(operation(value_of(half(lane.a)), value_of(half(lane.b))), lane);
}

// Sums have at most 41 bits and products 22, so that they are exact. A quotient or a root whose
// first 64 bits are not exact is not near a number of 11 bits, nor near the middle of two.
uint64_t add(const Lane& lane) {
  return binary(lane, [](long double a, long double b) { return a + b; });
}
uint64_t subtract(const Lane& lane) {
  return binary(lane, [](long double a, long double b) { return a - b; });
}
uint64_t multiply(const Lane& lane) {
  return binary(lane, [](long double a, long double b) { return a * b; });
}
uint64_t divide(const Lane& lane) {
  return binary(lane, [](long double a, long double b) { return a / b; });
}
uint64_t square_root(const Lane& lane) {
  if (is_nan(half(lane.a))) return quiet(half(lane.a));
  return rounded(std::sqrt(value_of(half(lane.a))), lane);
}

/// The second operand where either is NaN, or both are zero.
uint64_t minimum(const Lane& lane) {
  if (is_nan(half(lane.a)) || is_nan(half(lane.b))) return lane.b;
  return value_of(half(lane.a)) < value_of(half(lane.b)) ? lane.a : lane.b;
}
uint64_t maximum(const Lane& lane) {
  if (is_nan(half(lane.a)) || is_nan(half(lane.b))) return lane.b;
  return value_of(half(lane.a)) > value_of(half(lane.b)) ? lane.a : lane.b;
}

/// a * b + c for finite numbers, rounded once. A sum that a long double does not hold is between
/// two numbers that it does hold; the one with an odd last bit rounds as the sum does (rounding to
/// odd).
uint64_t exact_multiply_add(long double a, long double b, long double c, const Lane& lane) {
  const long double product = a * b;  // 22 bits: exact
  const long double sum = product + c;
  // Knuth's TwoSum: what the rounded sum lacks, exactly.
  const long double of_product = sum - c;
  const long double lacking = (product - of_product) + (c - (sum - of_product));
  if (lacking == 0) return rounded_half(sum, lane.rounding);
  int exponent = 0;
  const bool is_odd = std::fmod(std::ldexp(std::frexp(sum, &exponent), 64), 2.0L) != 0;
  if (is_odd) return rounded_half(sum, lane.rounding);
  return rounded_half(std::nextafter(sum, sum + std::copysign(std::abs(sum), lacking)),
                      lane.rounding);
}

uint64_t multiply_add(const Lane& lane, bool negated) {
  for (const uint64_t bits : {lane.a, lane.b, lane.old}) {
    if (is_nan(half(bits))) return quiet(half(bits));
  }
  const long double a = negated ? -value_of(half(lane.a)) : value_of(half(lane.a));
  const long double b = value_of(half(lane.b));
  const long double c = value_of(half(lane.old));
  if (std::isinf(a) || std::isinf(b) || std::isinf(c)) return rounded(a * b + c, lane);
  return exact_multiply_add(a, b, c, lane);
}
uint64_t fused_add(const Lane& lane) { return multiply_add(lane, false); }
uint64_t fused_negated_add(const Lane& lane) { return multiply_add(lane, true); }

/// Immediate: the mode in bits 0 and 1, MXCSR's instead if bit 2 is set; fraction bits in bits 4
/// to 7.
uint64_t round_to_scale(const Lane& lane) {
  if (is_nan(half(lane.a))) return quiet(half(lane.a));
  const long double value = value_of(half(lane.a));
  if (std::isinf(value)) return lane.a;
  const auto mode = static_cast<RoundingMode>(lane.immediate & 3);
  const int fraction_bits = lane.immediate >> 4;
  const long double scaled = std::ldexp(value, fraction_bits);
  const bool own_mode = (lane.immediate & 4) == 0;
  const long double result = integral(scaled, own_mode ? mode : lane.rounding);
  return rounded_half(std::copysign(std::ldexp(result, -fraction_bits), value), lane.rounding);
}

/// Intel SDM, CMPPS, table 3-1: for which outcomes each predicate is true.
uint64_t compare(const Lane& lane) {
  enum Outcome : uint8_t { less = 1, equal = 2, greater = 4, unordered = 8 };
  constexpr uint8_t true_for[16] = {
      equal,
      less,
      less | equal,
      unordered,
      less | greater | unordered,
      equal | greater | unordered,
      greater | unordered,
      less | equal | greater,
      equal | unordered,
      less | unordered,
      less | equal | unordered,
      0,
      less | greater,
      equal | greater,
      greater,
      less | equal | greater | unordered,
  };
  Outcome outcome = unordered;
  if (!is_nan(half(lane.a)) && !is_nan(half(lane.b))) {
    const long double a = value_of(half(lane.a));
    const long double b = value_of(half(lane.b));
    outcome = a < b ? less : a == b ? equal : greater;
  }
  return (true_for[lane.immediate & 15] & outcome) != 0 ? 1 : 0;
}

// ---- Conversions.

template <class Integer>
uint64_t from_integer(const Lane& lane) {
  return rounded_half(static_cast<Integer>(lane.a), lane.rounding);
}

/// Out of range, NaN included: the least signed integer, the largest unsigned one.
template <class Integer>
uint64_t to_integer(const Lane& lane, RoundingMode mode) {
  constexpr bool is_signed = Integer(-1) < Integer(0);
  constexpr int bits = 8 * sizeof(Integer);
  constexpr uint64_t out_of_range =
      is_signed ? uint64_t{1} << (bits - 1) : ~uint64_t{0} >> (64 - bits);
  if (is_nan(half(lane.a))) return out_of_range;
  const long double number = integral(value_of(half(lane.a)), mode);
  const long double end = std::ldexp(1.0L, is_signed ? bits - 1 : bits);
  if (number >= end || number < (is_signed ? -end : 0)) return out_of_range;
  return static_cast<uint64_t>(static_cast<Integer>(number));
}
template <class Integer>
uint64_t to_integer_rounded(const Lane& lane) {
  return to_integer<Integer>(lane, lane.rounding);
}
template <class Integer>
uint64_t to_integer_truncated(const Lane& lane) {
  return to_integer<Integer>(lane, RoundingMode::toward_zero);
}

constexpr int payload_shift = 52 - 10;

uint64_t half_from_double(const Lane& lane) {
  const auto value = std::bit_cast<double>(lane.a);
  if (!std::isnan(value)) return rounded_half(value, lane.rounding);
  const uint64_t sign = lane.a >> 63 << 15;
  return sign | half_infinity | half_quiet | (lane.a >> payload_shift & 0x3ff);
}

uint64_t double_from_half(const Lane& lane) {
  const uint16_t source = half(lane.a);
  if (!is_nan(source)) return std::bit_cast<uint64_t>(static_cast<double>(value_of(source)));
  const uint64_t sign = uint64_t{source} >> 15 << 63;
  return sign | uint64_t{0x7ff} << 52 | (quiet(source) & 0x3ff) << payload_shift;
}

// clang-format off
constexpr LaneInstruction table[] = {
    {ZYDIS_MNEMONIC_VADDPH, 16, 16, 2, add},
    {ZYDIS_MNEMONIC_VSUBPH, 16, 16, 2, subtract},
    {ZYDIS_MNEMONIC_VMULPH, 16, 16, 2, multiply},
    {ZYDIS_MNEMONIC_VDIVPH, 16, 16, 2, divide},
    {ZYDIS_MNEMONIC_VSQRTPH, 16, 16, 1, square_root},
    {ZYDIS_MNEMONIC_VMINPH, 16, 16, 2, minimum},
    {ZYDIS_MNEMONIC_VMAXPH, 16, 16, 2, maximum},
    {ZYDIS_MNEMONIC_VFMADD231PH, 16, 16, 2, fused_add},
    {ZYDIS_MNEMONIC_VFNMADD231PH, 16, 16, 2, fused_negated_add},
    {ZYDIS_MNEMONIC_VRNDSCALEPH, 16, 16, 1, round_to_scale},
    {ZYDIS_MNEMONIC_VCMPPH, 16, 1, 2, compare},
    {ZYDIS_MNEMONIC_VCVTW2PH, 16, 16, 1, from_integer<int16_t>},
    {ZYDIS_MNEMONIC_VCVTUW2PH, 16, 16, 1, from_integer<uint16_t>},
    {ZYDIS_MNEMONIC_VCVTDQ2PH, 32, 16, 1, from_integer<int32_t>},
    {ZYDIS_MNEMONIC_VCVTUDQ2PH, 32, 16, 1, from_integer<uint32_t>},
    {ZYDIS_MNEMONIC_VCVTQQ2PH, 64, 16, 1, from_integer<int64_t>},
    {ZYDIS_MNEMONIC_VCVTUQQ2PH, 64, 16, 1, from_integer<uint64_t>},
    {ZYDIS_MNEMONIC_VCVTPH2W, 16, 16, 1, to_integer_rounded<int16_t>},
    {ZYDIS_MNEMONIC_VCVTPH2UW, 16, 16, 1, to_integer_rounded<uint16_t>},
    {ZYDIS_MNEMONIC_VCVTPH2DQ, 16, 32, 1, to_integer_rounded<int32_t>},
    {ZYDIS_MNEMONIC_VCVTPH2UDQ, 16, 32, 1, to_integer_rounded<uint32_t>},
    {ZYDIS_MNEMONIC_VCVTPH2QQ, 16, 64, 1, to_integer_rounded<int64_t>},
    {ZYDIS_MNEMONIC_VCVTPH2UQQ, 16, 64, 1, to_integer_rounded<uint64_t>},
    {ZYDIS_MNEMONIC_VCVTTPH2W, 16, 16, 1, to_integer_truncated<int16_t>},
    {ZYDIS_MNEMONIC_VCVTTPH2UW, 16, 16, 1, to_integer_truncated<uint16_t>},
    {ZYDIS_MNEMONIC_VCVTTPH2DQ, 16, 32, 1, to_integer_truncated<int32_t>},
    {ZYDIS_MNEMONIC_VCVTTPH2UDQ, 16, 32, 1, to_integer_truncated<uint32_t>},
    {ZYDIS_MNEMONIC_VCVTTPH2QQ, 16, 64, 1, to_integer_truncated<int64_t>},
    {ZYDIS_MNEMONIC_VCVTTPH2UQQ, 16, 64, 1, to_integer_truncated<uint64_t>},
    {ZYDIS_MNEMONIC_VCVTPD2PH, 64, 16, 1, half_from_double},
    {ZYDIS_MNEMONIC_VCVTPH2PD, 16, 64, 1, double_from_half},
};
// clang-format on

}  // namespace

const LaneInstruction* fp16_instruction(ZydisMnemonic mnemonic) {
  const auto* row = std::ranges::find(table, mnemonic, &LaneInstruction::mnemonic);
  return row == std::end(table) ? nullptr : row;
}

}  // namespace castor::emulator
