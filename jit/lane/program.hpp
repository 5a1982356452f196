// SPDX-License-Identifier: Apache-2.0
// Lane programs: what one chunk of a nest computes, as SSA over vectors of lanes.
//
// Every value is one vector register with one lane per element of the chunk; the widest lane type
// of the program decides how many elements that are. Where values come from and go to is
// abstract: `load` and `store` name a source and a sink by number, and the emitter binds them
// (Source and Sink in jit/emit/lane_emitter.hpp) to memory (memory_operands.hpp) or to registers
// that another emitter hands in.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/types/element_type.hpp"
#include "jit/kernel/spec.hpp"

namespace castor::jit {

/// What a lane holds. Integers carry no sign: the operations do. m8 to m64 are truth values that
/// belong to lanes of that width (opmask bits on AVX-512, all-ones lanes on AVX2).
enum class LaneType : uint8_t { i8, i16, i32, i64, f16, f32, f64, m8, m16, m32, m64 };

constexpr int bits_of(LaneType type) {
  constexpr int bits[] = {8, 16, 32, 64, 16, 32, 64, 8, 16, 32, 64};
  return bits[static_cast<int>(type)];
}
constexpr bool is_mask(LaneType type) { return type >= LaneType::m8; }
constexpr LaneType integer_lane(int bits) {
  return bits == 8    ? LaneType::i8
         : bits == 16 ? LaneType::i16
         : bits == 32 ? LaneType::i32
                      : LaneType::i64;
}
/// f16 lanes are computed with on targets with AVX512-FP16; elsewhere f16 stands in i16 lanes.
constexpr LaneType float_lane(int bits) {
  return bits == 16 ? LaneType::f16 : bits == 32 ? LaneType::f32 : LaneType::f64;
}
constexpr LaneType mask_lane(int bits) {
  return static_cast<LaneType>(static_cast<int>(integer_lane(bits)) +
                               static_cast<int>(LaneType::m8));
}
std::string_view name_of(LaneType type);

/// How a conversion or `round` rounds. `nearest_even` is MXCSR's mode inside kernels.
enum class LaneRounding : uint8_t { nearest_even, down, up, toward_zero };
std::string_view name_of(LaneRounding rounding);

/// Comparisons of floats; quiet, and false where an operand is NaN but for the last two.
enum class FloatPredicate : uint8_t {
  equal,
  less,
  less_equal,
  greater,
  greater_equal,
  not_equal,
  ordered,
  unordered,
  not_equal_or_unordered
};
std::string_view name_of(FloatPredicate predicate);

/// Comparisons of integers.
enum class IntegerPredicate : uint8_t {
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal
};
std::string_view name_of(IntegerPredicate predicate);

/// How a store puts wide lanes into narrower elements.
enum class Narrowing : uint8_t {
  truncate,              ///< the low bits
  high_half,             ///< the upper half of the lane's bits (32 -> 16, 16 -> 8)
  saturate_to_signed,    ///< signed lanes, clamped to the signed element, sub-byte ones included
  saturate_to_unsigned,  ///< signed lanes, clamped to the unsigned element
  fits_signed,           ///< truncate, and saturate_to_signed would give the same
  fits_unsigned,         ///< truncate, and saturate_to_unsigned would give the same
  look_up_16,            ///< bytes become 16-bit elements by the store's table
  look_up_upper_16,      ///< bytes become 32-bit elements, whose upper halves the table has
  look_up_i16,           ///< bytes become wider integers, by an i16's sign extension (VBMI)
  encode_16_bits,  ///< 16-bit floats become codes of at most 8 bits by the store's threshold table
  encode_high_half,  ///< the upper half of 32-bit lanes becomes such codes
  /// 32-bit lanes that hold i16 become codes of a small float: bit 15 is the sign, the bits from
  /// 7 - mantissa bits on are the magnitude's code, and those between count for nothing (AVX-512).
  signed_code,
  f16_to_e5m2,      ///< 16-bit lanes with f16, no NaN of which is signalling, are rounded
  f16_to_e5m2fnuz,  ///< 16-bit lanes with f16 are rounded to f8e5m2fnuz (AVX-512)
  bf16_to_fnuz,     ///< 16-bit lanes with bf16 are rounded to a fnuz format (VBMI)
  /// 16-bit lanes have the code of an fnuz number's magnitude in the lower byte, its highest bit
  /// flipped, and the number's sign in bit 15 (AVX-512).
  fnuz_code,
  f16_to_f4,           ///< 16-bit lanes with f16 are rounded to f4e2m1, to nearest even (VBMI)
  bf16_to_f4,          ///< and so is bf16
  f16_to_nf4,          ///< 16-bit lanes with f16 become nf4 (VBMI)
  bf16_to_nf4,         ///< and so does bf16
  bf16_to_power,       ///< 16-bit lanes with bf16 are rounded to f8e8m0, to nearest even (AVX-512)
  high_half_to_power,  ///< the upper half of 32-bit lanes is (AVX-512)
  /// 32-bit lanes hold the code of a small float's magnitude in bits 8 to 15 and zeros elsewhere;
  /// the store's other operand, if it has one, the sign in its lanes' highest bit (AVX2).
  magnitude_code,
  /// The store's byte table has the codes of lanes that are clamped: as signed lanes to i8 and to
  /// the table's bits (64-bit lanes hold nothing beyond already), or of lanes that fit u8.
  look_up_i8,
  look_up_u8,
  /// The store's byte table has the codes by the low 9 bits of 16-bit lanes, 256 in the lower bytes
  /// of its entries, then 256 in the upper ones; bit 15 is the sign of all codes (VBMI).
  look_up_9_bits,
  encode_by_class,  ///< 16-bit floats become codes by the store's class table (VBMI)
  from_unsigned,    ///< unsigned 32-bit lanes, clamped; of single chunks, with AVX-512
};
constexpr bool looks_up(Narrowing narrowing) {
  return narrowing == Narrowing::look_up_16 || narrowing == Narrowing::look_up_upper_16 ||
         narrowing == Narrowing::look_up_i16;
}
/// Whether a store makes codes of bytes by a table.
constexpr bool looks_up_bytes(Narrowing narrowing) {
  return narrowing == Narrowing::look_up_i8 || narrowing == Narrowing::look_up_u8;
}
/// Whether a store makes codes of lanes that hold something else.
constexpr bool encodes(Narrowing narrowing) {
  return narrowing == Narrowing::encode_16_bits || narrowing == Narrowing::encode_high_half ||
         narrowing == Narrowing::signed_code || narrowing == Narrowing::f16_to_e5m2 ||
         narrowing == Narrowing::bf16_to_fnuz || narrowing == Narrowing::f16_to_nf4 ||
         narrowing == Narrowing::bf16_to_nf4 || narrowing == Narrowing::f16_to_e5m2fnuz ||
         narrowing == Narrowing::fnuz_code || narrowing == Narrowing::f16_to_f4 ||
         narrowing == Narrowing::bf16_to_f4 || narrowing == Narrowing::bf16_to_power ||
         narrowing == Narrowing::high_half_to_power || narrowing == Narrowing::magnitude_code ||
         narrowing == Narrowing::look_up_9_bits || narrowing == Narrowing::encode_by_class ||
         looks_up_bytes(narrowing);
}
std::string_view name_of(Narrowing narrowing);

enum class LaneOp : uint8_t {
  /// Source `imm`, extended to the lane type: integers of whole bytes by the sign of their element
  /// type; all else, the codes of elements narrower than a byte included, with zeros.
  load,
  /// The elements of source `imm`, a table, at the indices in a: i8 lanes, read as unsigned
  /// numbers.
  gather,
  store,     ///< sink `imm` takes a, narrowed by `narrowing`, with the signs of b
  constant,  ///< `imm` in every lane
  // integers
  add,
  sub,
  sub_down_to_zero,  // unsigned numbers of 8 or 16 bits; 0 where b is more than a
  mul,               // the low half of the product
  mul_low_u32,       // of 64-bit lanes: the product of the lower halves, as u32 (AVX2)
  dot_i16_pairs,  // of 32-bit lanes: the sum of two products, of their lower and upper i16 halves
  add_dot_i16_pairs,  // c + dot_i16_pairs(a, b) (VNNI)
  dot_u8_pair,        // in 16-bit lanes, the sum of its u8 halves' products with b's i8, as i16
  mul_high_u16,       // of 32-bit lanes: their u16 halves become the upper halves of the products
  bit_and,
  bit_or,
  bit_xor,
  bit_andnot,  // andnot: ~a & b
  shift_left,
  shift_right,
  shift_right_signed,  // by imm
  shift_left_by,
  shift_right_by,
  shift_right_signed_by,  // by b, lane by lane; as far as the target has the instruction
  min_signed,
  min_unsigned,
  max_signed,
  max_unsigned,
  absolute,
  leading_zeros,  // of 32-bit lanes (AVX-512)
  divide_each,
  remainder_each,  // of unsigned 64-bit lanes, one by one; b is not 0
  bit_ternary,  // any function of a, b, c, by truth table: bit 4 * a + 2 * b + c of imm (AVX-512)
  equal,
  greater_signed,  // -> mask
  compare_signed,
  compare_unsigned,  // imm is an IntegerPredicate -> mask (AVX-512)
  any_bits,          // whether a & b is not 0 -> mask (AVX-512)
  combine_halves,    // of 64-bit lanes: the upper half of a, the lower half of b (AVX2)
  extend_zero,
  extend_sign,
  truncate,
  widen_to_high_half,  // i16 -> i32, into the upper 16 bits
  // masks
  mask_and,
  mask_or,
  mask_xor,
  mask_andnot,
  mask_not,
  mask_resize,
  select,  // mask ? a : c; see LaneInst::mask
  // floats. min and max are x86's: b when either is NaN or both are zero
  float_add,
  float_sub,
  float_mul,
  float_div,
  /// a / b as rounding to a small integer sees it: 0 where that is NaN, and below a quarter in
  /// magnitude anything below a quarter; or as encoding sees it (QuotientFacts::is_encoded). c,
  /// where it is there, is 1 / b, rounded, or the quotient
  /// by it, and the lanes of the mask are those where b does not divide by it (with_reciprocals).
  /// imm are QuotientFacts. f32, AVX-512.
  float_quotient,
  /// a / b, rounded to the nearest even integer, and 0 where that is NaN; beyond 2^17 any integer
  /// beyond it on the same side, below 3 * 2^29 in magnitude. c and mask, which is a vector here,
  /// are 1 / b with its magnitude less and more by reciprocal_slack units of the last place, and c
  /// is NaN where b does not divide by its reciprocal (with_reciprocals). AVX-512.
  quotient_to_signed,
  float_sqrt,
  float_sub_product,  // c - a * b, rounded once
  float_min,
  float_max,
  range_min,
  range_max,             // -0 below +0; of a NaN and a number, the number (AVX-512)
  range_magnitude,       // a, its magnitude at most b's; of NaN and a number, the number (AVX-512)
  range_magnitude_from,  // a, its magnitude at least b's; NaN as above (AVX-512)
  float_remainder_each,  // under a mask: C's fmod, lane by lane; a is finite, b not 0
  fix_up,         // by b's class: a, b, b quiet or a number; c is vfixupimmps' table (AVX-512)
  round,          // to an integral value; imm is a LaneRounding
  float_compare,  // imm is a FloatPredicate -> mask
  // between kinds. imm of those that can round is a LaneRounding
  f16_to_f32,
  f32_to_f16,
  f32_to_f64,
  f64_to_f32,
  f16_to_f64,
  f64_to_f16,  // (AVX512-FP16)
  signed_to_float,
  unsigned_to_float,  // i32, i64 -> f32, f64; i16, i32, i64 -> f16 (AVX512-FP16)
  float_to_signed,
  /// f32, f64 -> i32, i64; f16 -> i16, i32, i64 (AVX512-FP16); out of range: 1 << (bits - 1), ~0
  float_to_unsigned,
  // tables, by the lane's low bits
  look_up,      // i8 -> i8
  look_up_i32,  // i32 -> i32
  /// All lanes of a chunk, from its two halves: everything before is done for one after the other,
  /// and gives a (with_joined_halves).
  join,
};
inline constexpr int lane_op_count = static_cast<int>(LaneOp::join) + 1;
std::string_view name_of(LaneOp op);
/// Whether the instruction reads or sets MXCSR.
bool uses_float_state(LaneOp op);

/// Index into LaneProgram::code; an instruction defines at most one value, with its own index.
using LaneId = int32_t;
inline constexpr LaneId no_lane = -1;

struct LaneInst {
  LaneOp op = LaneOp::load;
  LaneType type = LaneType::i32;  ///< of the result; of the operand for `store`
  Narrowing narrowing = Narrowing::truncate;
  LaneId a = no_lane;
  LaneId b = no_lane;
  /// Under a mask, lanes where it is false take c, or zero when there is none. Without a mask, c is
  /// a third operand.
  LaneId c = no_lane;
  LaneId mask = no_lane;
  int64_t imm = 0;
  int32_t table = -1;   ///< where the instruction looks up: index into the program's tables
  int32_t chunk = 0;    ///< a load's or store's, where chunks are done as one (adjacent_chunks)
  uint32_t origin = 0;  ///< index of the IR operation that it comes from

  static constexpr auto fields(const auto& list) {
    return list(field("op", &LaneInst::op), field("type", &LaneInst::type),
                field("narrowing", &LaneInst::narrowing), field("a", &LaneInst::a),
                field("b", &LaneInst::b), field("c", &LaneInst::c), field("mask", &LaneInst::mask),
                field("imm", &LaneInst::imm), field("table", &LaneInst::table),
                field("chunk", &LaneInst::chunk), not_in_code(&LaneInst::origin));
  }
};

/// Calls `visit` with each operand of an instruction, by reference.
template <class Inst, class Visit>
void for_each_operand(Inst& inst, Visit visit) {
  for (auto* id : {&inst.a, &inst.b, &inst.mask, &inst.c}) {
    if (*id != no_lane) visit(*id);
  }
}

/// What each byte becomes, by its low bits: 4, 6, 7 or 8 of them. Bits above are ignored, but for a
/// table of 4, where bytes with bit 7 become 0.
struct ByteTable {
  int index_bits = 8;
  std::array<uint16_t, 256> entries = {};
  friend bool operator==(const ByteTable&, const ByteTable&) = default;
};
/// Whether a table by signed numbers of 4 bits has 0 for all negative ones, as every byte with bit
/// 7 becomes.
constexpr bool has_zero_of_negative(const ByteTable& table) {
  return table.index_bits == 4 && std::all_of(table.entries.begin() + 8, table.entries.begin() + 16,
                                              [](uint16_t entry) { return entry == 0; });
}

/// What each 32-bit lane becomes, by its low 2 or 3 (AVX2), 4 or 5 bits; bits above are ignored.
struct I32Table {
  int index_bits = 4;
  std::array<uint32_t, 32> entries = {};
  friend bool operator==(const I32Table&, const I32Table&) = default;
};

/// How 16-bit floats become codes of at most 8 bits. Magnitudes with equal bits from `shift` on are
/// a bucket: they have one code below its threshold and the next code from there on.
struct ThresholdTable {
  enum Sign : uint8_t { copied, copied_unless_zero, negative_is_zero };
  enum Nan : uint8_t { as_magnitude, constant, with_sign, with_sign_and_payload };

  ByteTable buckets;      ///< low byte: the code; high byte: the first low bits of the next
  int32_t shift = 0;      ///< at most 7
  uint16_t base = 0;      ///< the first bucket; magnitudes below count as in it
  uint16_t max = 0;       ///< larger magnitudes count as this
  uint16_t infinity = 0;  ///< larger magnitudes are NaNs
  uint8_t sign_bit = 0;   ///< of the code
  uint8_t nan_code = 0;   ///< without its sign
  Sign sign = copied;
  Nan nan = as_magnitude;
  uint16_t unused = 0;  ///< no padding: tables are compared as bytes
  friend bool operator==(const ThresholdTable&, const ThresholdTable&) = default;
};

/// How 16-bit floats become codes of at most 8 bits by two look-ups. The upper byte has a class,
/// its sign apart; the class, the upper bits of the lower byte, and the sign are the code's index.
/// NaNs become 0.
struct ClassTable {
  /// By 7 bits: the class, where it stands in the index, and 0x80 for infinity's upper byte.
  ByteTable classes;
  ByteTable codes;        ///< by the index, of 6 or 7 bits
  int32_t low_bits = 0;   ///< how many of the lower byte are the lowest ones of the index; up to 4
  uint16_t sign_bit = 0;  ///< the bit that the index has for it; 0 where negative numbers become 0
  uint16_t infinity = 0;  ///< larger magnitudes are NaNs
  friend bool operator==(const ClassTable&, const ClassTable&) = default;
};

/// Bits of the lanes that hold an element's own bits: sub-byte elements take bytes.
constexpr int lane_bits_of(ElementType element) {
  return is_sub_byte(element) ? 8 : bits_of(element);
}

/// How a sink takes lanes. One that folds is an accumulator: each of its elements is combined with
/// all lanes that are stored to it. Its elements are as wide as the lanes.
enum class Fold : uint8_t {
  none,  ///< lanes become elements
  add,
  float_add,
  min_signed,
  max_signed,
  min_unsigned,
  max_unsigned,
  float_min,  ///< -0 is below +0; NaNs may get lost
  float_max,
  any_nan,  ///< a NaN if one of the lanes is, else any number
};
std::string_view name_of(Fold fold);
bool uses_float_state(Fold fold);

/// A source or a sink: a tensor that chunks are loaded from or stored to. A surrounding emitter may
/// hand in registers instead.
struct MemoryOperand {
  ElementType element;
  /// Where the source is a table that `gather` reads, of 2^n entries: n, which is 4 or 8; else 0.
  uint8_t index_bits = 0;
  bool is_table() const { return index_bits != 0; }
  Fold fold = Fold::none;  ///< how a sink takes lanes
};

/// Says that a program does nothing but multiply small floats, the codes of one source, by the f32
/// of another: sink 0 is bf16(f32(code) * scale), rounded to f32 and then to bf16. Emitters may
/// compute that in another way (emit/scaled_codes.hpp).
struct ScaledCodes {
  int32_t codes = -1;   ///< index of the source of codes, or -1 where the program does other things
  int32_t scales = -1;  ///< index of the source of scales
  int32_t are_powers = 0;  ///< whether all scales that are normal numbers are powers of two
  bool exist() const { return codes >= 0; }
};

/// Says that a program does nothing but multiply bf16 by powers of two and encode: sink 0, of
/// f8e4m3, f8e5m2 or f4e2m1, is code(f32(x) * power), to nearest and saturated. Emitters may
/// compute that in another way (emit/power_codes.hpp).
struct ScaledFloats {
  int32_t floats = -1;  ///< index of the source of bf16, or -1 where the program does other things
  int32_t powers = -1;  ///< index of the source of f32, whose normal numbers are powers of two
  bool exist() const { return floats >= 0; }
};

/// Says that a program does nothing but divide bf16 by f32 and encode: sink 0, of f4e2m1, is
/// code(f32(x) / divisor), rounded to f32 and then to nearest, and saturated. Emitters may compute
/// that in another way (emit/quotient_codes.hpp).
struct DividedFloats {
  int32_t floats = -1;  ///< index of the source of bf16, or -1 where the program does other things
  int32_t divisors = -1;  ///< index of the source of f32
  bool exist() const { return floats >= 0; }
};

struct LaneProgram {
  std::vector<LaneInst> code;
  std::vector<MemoryOperand> sources;
  std::vector<MemoryOperand> sinks;
  std::vector<ByteTable> tables;
  std::vector<I32Table> i32_tables;
  std::vector<ThresholdTable> threshold_tables;
  std::vector<ClassTable> class_tables;
  ScaledCodes scaled_codes;
  ScaledFloats scaled_floats;
  DividedFloats divided_floats;

  static constexpr auto fields(const auto& list) {
    return list(field("code", &LaneProgram::code), field("sources", &LaneProgram::sources),
                field("sinks", &LaneProgram::sinks), field("tables", &LaneProgram::tables),
                field("i32_tables", &LaneProgram::i32_tables),
                field("threshold_tables", &LaneProgram::threshold_tables),
                field("class_tables", &LaneProgram::class_tables),
                field("scaled_codes", &LaneProgram::scaled_codes),
                field("scaled_floats", &LaneProgram::scaled_floats),
                field("divided_floats", &LaneProgram::divided_floats));
  }

  /// Bits of the widest lane type: a chunk has vector_bits / widest_bits() lanes.
  int widest_bits() const;
  /// Whether a sink folds.
  bool folds() const;
  bool uses_float_state() const;
};

/// One instruction: "%3: f32 = float_min %1 255.0 where %2 else %1", or
/// "sink0: u8 = store %3 truncate".
/// Operands that are constants stand as their values: finite floats in decimal where that is
/// short, else in C's hexadecimal form; other bits in hexadecimal from 10 on.
std::string print(const LaneProgram& program, LaneId id);

}  // namespace castor::jit
