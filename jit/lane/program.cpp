// SPDX-License-Identifier: Apache-2.0
#include "jit/lane/program.hpp"

#include <fmt/format.h>

#include <algorithm>

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
    {LaneOp::store, "store", false},
    {LaneOp::constant, "constant", false},
    {LaneOp::add, "add", false},
    {LaneOp::sub, "sub", false},
    {LaneOp::bit_and, "and", false},
    {LaneOp::bit_or, "or", false},
    {LaneOp::bit_xor, "xor", false},
    {LaneOp::bit_andnot, "andnot", false},
    {LaneOp::shift_left, "shift_left", false},
    {LaneOp::shift_right, "shift_right", false},
    {LaneOp::shift_right_signed, "shift_right_signed", false},
    {LaneOp::min_signed, "min_signed", false},
    {LaneOp::min_unsigned, "min_unsigned", false},
    {LaneOp::max_signed, "max_signed", false},
    {LaneOp::max_unsigned, "max_unsigned", false},
    {LaneOp::equal, "equal", false},
    {LaneOp::greater_signed, "greater_signed", false},
    {LaneOp::extend_zero, "extend_zero", false},
    {LaneOp::extend_sign, "extend_sign", false},
    {LaneOp::truncate, "truncate", false},
    {LaneOp::mask_and, "mask_and", false},
    {LaneOp::mask_or, "mask_or", false},
    {LaneOp::mask_not, "mask_not", false},
    {LaneOp::mask_resize, "mask_resize", false},
    {LaneOp::select, "select", false},
    {LaneOp::float_add, "float_add", true},
    {LaneOp::float_sub, "float_sub", true},
    {LaneOp::float_mul, "float_mul", true},
    {LaneOp::float_min, "float_min", true},
    {LaneOp::float_max, "float_max", true},
    {LaneOp::round, "round", true},
    {LaneOp::float_compare, "float_compare", true},
    {LaneOp::f16_to_f32, "f16_to_f32", true},
    {LaneOp::f32_to_f16, "f32_to_f16", true},
    {LaneOp::f32_to_f64, "f32_to_f64", true},
    {LaneOp::f64_to_f32, "f64_to_f32", true},
    {LaneOp::signed_to_float, "signed_to_float", true},
    {LaneOp::unsigned_to_float, "unsigned_to_float", true},
    {LaneOp::float_to_signed, "float_to_signed", true},
    {LaneOp::float_to_unsigned, "float_to_unsigned", true},
}};

constexpr bool table_is_in_enum_order() {
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].op != static_cast<LaneOp>(i)) return false;
  }
  return true;
}
static_assert(table_is_in_enum_order());

const LaneOpInfo& info(LaneOp op) { return table[static_cast<size_t>(op)]; }

std::string immediate_text(const LaneInst& inst) {
  switch (inst.op) {
    case LaneOp::constant: return fmt::format(" 0x{:x}", static_cast<uint64_t>(inst.imm));
    case LaneOp::shift_left:
    case LaneOp::shift_right:
    case LaneOp::shift_right_signed: return fmt::format(" {}", inst.imm);
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
  constexpr std::string_view names[] = {"i8",  "i16", "i32", "i64", "f32",
                                        "f64", "m8",  "m16", "m32", "m64"};
  return names[static_cast<size_t>(type)];
}

std::string_view name_of(LaneRounding rounding) {
  constexpr std::string_view names[] = {"nearest_even", "down", "up", "toward_zero"};
  return names[static_cast<size_t>(rounding)];
}

std::string_view name_of(FloatPredicate predicate) {
  constexpr std::string_view names[] = {"equal",         "less",      "less_equal", "greater",
                                        "greater_equal", "not_equal", "ordered",    "unordered"};
  return names[static_cast<size_t>(predicate)];
}

std::string_view name_of(Narrowing narrowing) {
  constexpr std::string_view names[] = {"truncate",           "high_half",
                                        "saturate_to_signed", "saturate_to_unsigned",
                                        "fits_signed",        "fits_unsigned"};
  return names[static_cast<size_t>(narrowing)];
}

std::string_view name_of(LaneOp op) { return info(op).name; }
bool uses_float_state(LaneOp op) { return info(op).float_state; }

int LaneProgram::widest_bits() const {
  int widest = 8;
  for (const LaneInst& inst : code) widest = std::max(widest, bits_of(inst.type));
  return widest;
}

bool LaneProgram::uses_float_state() const {
  return std::any_of(code.begin(), code.end(),
                     [](const LaneInst& inst) { return jit::uses_float_state(inst.op); });
}

std::string print(const LaneProgram& program, LaneId id) {
  const LaneInst& inst = program.code[static_cast<size_t>(id)];
  const auto name = [](const std::vector<LanePort>& ports, int64_t index) {
    return name_of(ports[static_cast<size_t>(index)].element);
  };
  std::string text;
  if (inst.op == LaneOp::store) {
    text = fmt::format("store sink{}:{} %{}: {}", inst.imm, name(program.sinks, inst.imm), inst.a,
                       name_of(inst.type));
    if (info(program.sinks[static_cast<size_t>(inst.imm)].element).bits != bits_of(inst.type)) {
      text += fmt::format(" {}", name_of(inst.narrowing));
    }
    return text;
  }
  text = fmt::format("%{}: {} = {}", id, name_of(inst.type), name_of(inst.op));
  if (inst.op == LaneOp::load) {
    text += fmt::format(" source{}:{}", inst.imm, name(program.sources, inst.imm));
  }
  for (LaneId operand : {inst.a, inst.b}) {
    if (operand != no_lane) text += fmt::format(" %{}", operand);
  }
  text += immediate_text(inst);
  if (inst.mask != no_lane) {
    text += inst.passthrough == no_lane
                ? fmt::format(" where %{} else 0", inst.mask)
                : fmt::format(" where %{} else %{}", inst.mask, inst.passthrough);
  }
  return text;
}

std::string print(const LaneProgram& program) {
  std::string text;
  for (size_t id = 0; id < program.code.size(); ++id) {
    text += "  " + print(program, static_cast<LaneId>(id)) + "\n";
  }
  return text;
}

}  // namespace castor::jit
