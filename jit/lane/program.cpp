// SPDX-License-Identifier: Apache-2.0
#include "jit/lane/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "ir/numerics/scalar.hpp"
#include "jit/lane/quotient_facts.hpp"

namespace castor::jit {

namespace {

/// One row for each lane operation, in enum order.
struct LaneOpInfo {
  LaneOp op;
  std::string_view name;
  bool float_state;
};

constexpr std::array<LaneOpInfo, lane_op_count> table = {{
    {LaneOp::load, "load", false},
    {LaneOp::gather, "gather", false},
    {LaneOp::store, "store", false},
    {LaneOp::constant, "constant", false},
    {LaneOp::add, "add", false},
    {LaneOp::sub, "sub", false},
    {LaneOp::sub_down_to_zero, "sub_down_to_zero", false},
    {LaneOp::mul, "mul", false},
    {LaneOp::mul_low_u32, "mul_low_u32", false},
    {LaneOp::dot_i16_pairs, "dot_i16_pairs", false},
    {LaneOp::add_dot_i16_pairs, "add_dot_i16_pairs", false},
    {LaneOp::dot_u8_pair, "dot_u8_pair", false},
    {LaneOp::mul_high_u16, "mul_high_u16", false},
    {LaneOp::bit_and, "and", false},
    {LaneOp::bit_or, "or", false},
    {LaneOp::bit_xor, "xor", false},
    {LaneOp::bit_andnot, "andnot", false},
    {LaneOp::shift_left, "shift_left", false},
    {LaneOp::shift_right, "shift_right", false},
    {LaneOp::shift_right_signed, "shift_right_signed", false},
    {LaneOp::shift_left_by, "shift_left_by", false},
    {LaneOp::shift_right_by, "shift_right_by", false},
    {LaneOp::shift_right_signed_by, "shift_right_signed_by", false},
    {LaneOp::min_signed, "min_signed", false},
    {LaneOp::min_unsigned, "min_unsigned", false},
    {LaneOp::max_signed, "max_signed", false},
    {LaneOp::max_unsigned, "max_unsigned", false},
    {LaneOp::absolute, "absolute", false},
    {LaneOp::leading_zeros, "leading_zeros", false},
    {LaneOp::divide_each, "divide_each", false},
    {LaneOp::remainder_each, "remainder_each", false},
    {LaneOp::bit_ternary, "bit_ternary", false},
    {LaneOp::equal, "equal", false},
    {LaneOp::greater_signed, "greater_signed", false},
    {LaneOp::compare_signed, "compare_signed", false},
    {LaneOp::compare_unsigned, "compare_unsigned", false},
    {LaneOp::any_bits, "any_bits", false},
    {LaneOp::combine_halves, "combine_halves", false},
    {LaneOp::extend_zero, "extend_zero", false},
    {LaneOp::extend_sign, "extend_sign", false},
    {LaneOp::truncate, "truncate", false},
    {LaneOp::widen_to_high_half, "widen_to_high_half", false},
    {LaneOp::mask_and, "mask_and", false},
    {LaneOp::mask_or, "mask_or", false},
    {LaneOp::mask_xor, "mask_xor", false},
    {LaneOp::mask_andnot, "mask_andnot", false},
    {LaneOp::mask_not, "mask_not", false},
    {LaneOp::mask_resize, "mask_resize", false},
    {LaneOp::select, "select", false},
    {LaneOp::float_add, "float_add", true},
    {LaneOp::float_sub, "float_sub", true},
    {LaneOp::float_mul, "float_mul", true},
    {LaneOp::float_div, "float_div", true},
    {LaneOp::float_quotient, "float_quotient", true},
    {LaneOp::quotient_to_signed, "quotient_to_signed", true},
    {LaneOp::float_sqrt, "float_sqrt", true},
    {LaneOp::float_sub_product, "float_sub_product", true},
    {LaneOp::float_min, "float_min", true},
    {LaneOp::float_max, "float_max", true},
    {LaneOp::range_min, "range_min", true},
    {LaneOp::range_max, "range_max", true},
    {LaneOp::range_magnitude, "range_magnitude", true},
    {LaneOp::range_magnitude_from, "range_magnitude_from", true},
    {LaneOp::float_remainder_each, "float_remainder_each", true},
    {LaneOp::fix_up, "fix_up", true},
    {LaneOp::round, "round", true},
    {LaneOp::float_compare, "float_compare", true},
    {LaneOp::f16_to_f32, "f16_to_f32", true},
    {LaneOp::f32_to_f16, "f32_to_f16", true},
    {LaneOp::f32_to_f64, "f32_to_f64", true},
    {LaneOp::f64_to_f32, "f64_to_f32", true},
    {LaneOp::f16_to_f64, "f16_to_f64", true},
    {LaneOp::f64_to_f16, "f64_to_f16", true},
    {LaneOp::signed_to_float, "signed_to_float", true},
    {LaneOp::unsigned_to_float, "unsigned_to_float", true},
    {LaneOp::float_to_signed, "float_to_signed", true},
    {LaneOp::float_to_unsigned, "float_to_unsigned", true},
    {LaneOp::look_up, "look_up", false},
    {LaneOp::look_up_i32, "look_up_i32", false},
    {LaneOp::join, "join", false},
}};

constexpr bool table_is_in_enum_order() {
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].op != static_cast<LaneOp>(i)) return false;
  }
  return true;
}
static_assert(table_is_in_enum_order());

const LaneOpInfo& info(LaneOp op) { return table[static_cast<size_t>(op)]; }

/// A float as a reader of numerics wants it: 255.0, but 0x1p+63.
std::string float_text(double value) {
  constexpr size_t long_decimal = 11;
  std::string text = fmt::format("{}", value);
  if (text.size() > long_decimal) return fmt::format("{:a}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

/// The number in a float lane.
std::optional<double> float_of(LaneType type, uint64_t pattern) {
  switch (type) {
    case LaneType::f16:
      return std::bit_cast<double>(
          numerics::convert(pattern, ElementType::f16, ElementType::f64, {}));
    case LaneType::f32: return std::bit_cast<float>(static_cast<uint32_t>(pattern));
    case LaneType::f64: return std::bit_cast<double>(pattern);
    default: return std::nullopt;
  }
}

std::string constant_text(const LaneInst& inst) {
  const int bits = bits_of(inst.type);
  const uint64_t pattern = static_cast<uint64_t>(inst.imm) & (~uint64_t{0} >> (64 - bits));
  if (const auto value = float_of(inst.type, pattern); value && std::isfinite(*value)) {
    return float_text(*value);
  }
  return pattern < 10 ? fmt::format("{}", pattern) : fmt::format("0x{:x}", pattern);
}

std::string operand_text(const LaneProgram& program, LaneId id) {
  const LaneInst& inst = program.code[static_cast<size_t>(id)];
  return inst.op == LaneOp::constant ? constant_text(inst) : fmt::format("%{}", id);
}

std::string_view name_of_element(const std::vector<MemoryOperand>& operands, int64_t index) {
  return name_of(operands[static_cast<size_t>(index)].element);
}

/// "sink0: i32 = fold %3 max_signed".
std::string fold_text(const LaneProgram& program, const LaneInst& inst) {
  return fmt::format("sink{}: {} = fold {} {}", inst.imm, name_of_element(program.sinks, inst.imm),
                     operand_text(program, inst.a),
                     name_of(program.sinks[static_cast<size_t>(inst.imm)].fold));
}

/// "sink0: u8 = store %3 truncate"; no word on narrowing where lanes and elements are as wide.
std::string store_text(const LaneProgram& program, const LaneInst& inst) {
  std::string text =
      fmt::format("sink{}: {} = store {}", inst.imm, name_of_element(program.sinks, inst.imm),
                  operand_text(program, inst.a));
  const ElementType element = program.sinks[static_cast<size_t>(inst.imm)].element;
  if (bits_of(element) != bits_of(inst.type)) text += fmt::format(" {}", name_of(inst.narrowing));
  if (inst.b != no_lane) text += fmt::format(" signs {}", operand_text(program, inst.b));
  return text;
}

std::string immediate_text(const LaneInst& inst) {
  switch (inst.op) {
    case LaneOp::bit_ternary:
    case LaneOp::constant: return " " + constant_text(inst);
    case LaneOp::shift_left:
    case LaneOp::shift_right:
    case LaneOp::shift_right_signed: return fmt::format(" {}", inst.imm);
    case LaneOp::compare_signed:
    case LaneOp::compare_unsigned:
      return fmt::format(" {}", name_of(static_cast<IntegerPredicate>(inst.imm)));
    case LaneOp::float_compare:
      return fmt::format(" {}", name_of(static_cast<FloatPredicate>(inst.imm)));
    case LaneOp::round:
    case LaneOp::f64_to_f32:
    case LaneOp::signed_to_float:
    case LaneOp::unsigned_to_float:
    case LaneOp::float_to_signed:
    case LaneOp::float_to_unsigned:
      return fmt::format(" {}", name_of(static_cast<LaneRounding>(inst.imm)));
    default: return "";
  }
}

}  // namespace

std::string_view name_of(LaneType type) {
  constexpr std::string_view names[] = {"i8",  "i16", "i32", "i64", "f16", "f32",
                                        "f64", "m8",  "m16", "m32", "m64"};
  return names[static_cast<size_t>(type)];
}

std::string_view name_of(LaneRounding rounding) {
  constexpr std::string_view names[] = {"nearest_even", "down", "up", "toward_zero"};
  return names[static_cast<size_t>(rounding)];
}

std::string_view name_of(FloatPredicate predicate) {
  constexpr std::string_view names[] = {"equal",   "less",          "less_equal",
                                        "greater", "greater_equal", "not_equal",
                                        "ordered", "unordered",     "not_equal_or_unordered"};
  return names[static_cast<size_t>(predicate)];
}

std::string_view name_of(IntegerPredicate predicate) {
  constexpr std::string_view names[] = {"equal",      "not_equal", "less",
                                        "less_equal", "greater",   "greater_equal"};
  return names[static_cast<size_t>(predicate)];
}

std::string_view name_of(Fold fold) {
  constexpr std::string_view names[] = {"none",       "add",          "float_add",    "min_signed",
                                        "max_signed", "min_unsigned", "max_unsigned", "float_min",
                                        "float_max",  "any_nan"};
  return names[static_cast<size_t>(fold)];
}

bool uses_float_state(Fold fold) {
  return fold == Fold::float_add || fold == Fold::float_min || fold == Fold::float_max ||
         fold == Fold::any_nan;
}

std::string_view name_of(Narrowing narrowing) {
  constexpr std::string_view names[] = {
      "truncate",      "high_half",          "saturate_to_signed", "saturate_to_unsigned",
      "fits_signed",   "fits_unsigned",      "look_up_16",         "look_up_upper_16",
      "look_up_i16",   "encode_16_bits",     "encode_high_half",   "signed_code",
      "f16_to_e5m2",   "f16_to_e5m2fnuz",    "bf16_to_fnuz",       "fnuz_code",
      "f16_to_f4",     "bf16_to_f4",         "f16_to_nf4",         "bf16_to_nf4",
      "bf16_to_power", "high_half_to_power", "magnitude_code",     "look_up_i8",
      "look_up_u8",    "look_up_9_bits",     "encode_by_class",    "from_unsigned"};
  static_assert(std::size(names) == static_cast<size_t>(Narrowing::from_unsigned) + 1);
  return names[static_cast<size_t>(narrowing)];
}

std::string_view name_of(LaneOp op) { return info(op).name; }
bool uses_float_state(LaneOp op) { return info(op).float_state; }

int LaneProgram::widest_bits() const {
  int widest = 8;
  for (const LaneInst& inst : code) widest = std::max(widest, bits_of(inst.type));
  return widest;
}

bool LaneProgram::folds() const {
  return std::ranges::any_of(sinks,
                             [](const MemoryOperand& sink) { return sink.fold != Fold::none; });
}

bool LaneProgram::uses_float_state() const {
  return std::any_of(code.begin(), code.end(),
                     [](const LaneInst& inst) { return jit::uses_float_state(inst.op); }) ||
         std::ranges::any_of(
             sinks, [](const MemoryOperand& sink) { return jit::uses_float_state(sink.fold); });
}

std::string print(const LaneProgram& program, LaneId id) {
  const LaneInst& inst = program.code[static_cast<size_t>(id)];
  if (inst.op == LaneOp::store) {
    const bool folds = program.sinks[static_cast<size_t>(inst.imm)].fold != Fold::none;
    return folds ? fold_text(program, inst) : store_text(program, inst);
  }
  std::string text = fmt::format("%{}: {} = {}", id, name_of(inst.type), name_of(inst.op));
  if (inst.op == LaneOp::load || inst.op == LaneOp::gather) {
    text += fmt::format(" source{}:{}", inst.imm, name_of_element(program.sources, inst.imm));
  }
  for (LaneId operand : {inst.a, inst.b, inst.mask == no_lane ? inst.c : no_lane}) {
    if (operand != no_lane) text += " " + operand_text(program, operand);
  }
  text += immediate_text(inst);
  if (inst.op == LaneOp::float_quotient) {
    if (inst.c == no_lane) return text;
    const QuotientFacts facts = QuotientFacts::of(inst.imm);
    return text + fmt::format(" {} %{} unless %{}", facts.takes_two_steps() ? "=" : "by", inst.c,
                              inst.mask);
  }
  if (inst.op == LaneOp::quotient_to_signed) {
    return text + fmt::format(" between %{} and %{}", inst.c, inst.mask);
  }
  if (inst.mask != no_lane) {
    text += fmt::format(" where %{} else {}", inst.mask,
                        inst.c == no_lane ? "0" : operand_text(program, inst.c));
  }
  return text;
}

}  // namespace castor::jit
