// SPDX-License-Identifier: Apache-2.0
#include "jit/lane/unsigned_stores.hpp"

#include <algorithm>
#include <bit>

namespace castor::jit {

namespace {

int uses_of(const LaneProgram& program, LaneId value) {
  int uses = 0;
  for (const LaneInst& inst : program.code) {
    for_each_operand(inst, [&](LaneId id) { uses += id == value; });
  }
  return uses;
}

/// The instruction of a value that is used once, if it is of that kind and not masked; else null.
LaneInst* only(LaneProgram& program, LaneId value, LaneOp op) {
  LaneInst& inst = program.code[static_cast<size_t>(value)];
  const bool is_plain = inst.op == op && inst.mask == no_lane && inst.c == no_lane;
  return is_plain && uses_of(program, value) == 1 ? &inst : nullptr;
}

/// Whether a constant is the largest number of the element type.
bool is_largest(const LaneInst& constant, ElementType element) {
  const auto largest = static_cast<float>((uint32_t{1} << bits_of(element)) - 1);
  return constant.type == LaneType::f32 &&
         static_cast<uint32_t>(constant.imm) == std::bit_cast<uint32_t>(largest);
}

void rewrite(LaneProgram& program, LaneInst& store) {
  const ElementType element = program.sinks[static_cast<size_t>(store.imm)].element;
  if (store.narrowing != Narrowing::saturate_to_unsigned || store.mask != no_lane) return;
  if (element != ElementType::u8 && element != ElementType::u16) return;
  LaneInst* integer = only(program, store.a, LaneOp::float_to_signed);
  if (integer == nullptr || integer->type != LaneType::i32) return;
  LaneInst* below = only(program, integer->a, LaneOp::float_min);
  if (below == nullptr || below->type != LaneType::f32) return;
  LaneInst* limit = only(program, below->a, LaneOp::constant);
  if (limit == nullptr || !is_largest(*limit, element)) return;
  limit->imm = 0;
  below->op = LaneOp::float_max;
  std::swap(below->a, below->b);
  integer->op = LaneOp::float_to_unsigned;
  store.narrowing = Narrowing::from_unsigned;
}

}  // namespace

void store_from_unsigned(LaneProgram& program) {
  for (LaneInst& inst : program.code) {
    if (inst.op == LaneOp::store) rewrite(program, inst);
  }
}

}  // namespace castor::jit
