// SPDX-License-Identifier: Apache-2.0
#include "jit/lane/halves.hpp"

#include "jit/lane/program_copy.hpp"

namespace castor::jit {

namespace {

const LaneInst& at(const LaneProgram& program, LaneId id) {
  return program.code[static_cast<size_t>(id)];
}

/// Whether each half of a chunk can be done on its own. What takes constants of a whole chunk's
/// lanes, or registers beside those of its operands, is left out: nothing of 64 bits needs it.
bool may_be_halved(const LaneProgram& program, const LaneInst& inst) {
  switch (inst.op) {
    case LaneOp::load:
      return lane_bits_of(program.sources[static_cast<size_t>(inst.imm)].element) == 64;
    case LaneOp::store:
    case LaneOp::gather:
    case LaneOp::mul:
    case LaneOp::divide_each:
    case LaneOp::remainder_each:
    case LaneOp::float_remainder_each:
    case LaneOp::float_quotient:
    case LaneOp::quotient_to_signed:
    case LaneOp::widen_to_high_half:
    case LaneOp::look_up:
    case LaneOp::look_up_i32: return false;
    default: return true;
  }
}

/// For each instruction, whether `value` is computed from it; that of the value itself too.
std::vector<bool> origins_of(const LaneProgram& program, LaneId value) {
  std::vector<bool> is_origin(program.code.size(), false);
  is_origin[static_cast<size_t>(value)] = true;
  for (LaneId id = value; id >= 0; --id) {
    if (!is_origin[static_cast<size_t>(id)]) continue;
    for_each_operand(at(program, id),
                     [&](LaneId operand) { is_origin[static_cast<size_t>(operand)] = true; });
  }
  return is_origin;
}

/// Whether the value's origins have all wide lanes, and nothing else takes any of them but narrow
/// constants.
bool is_after_wide_lanes(const LaneProgram& program, LaneId value) {
  const std::vector<bool> is_origin = origins_of(program, value);
  bool has_wide_lanes = false;
  bool is_used_in_computing = false;
  for (LaneId id = 0; id < static_cast<LaneId>(program.code.size()); ++id) {
    const LaneInst& inst = at(program, id);
    const bool is_wide = bits_of(inst.type) == 64;
    if (is_origin[static_cast<size_t>(id)]) {
      if (!may_be_halved(program, inst)) return false;
      has_wide_lanes |= is_wide;
      continue;
    }
    if (inst.op == LaneOp::constant) continue;
    if (is_wide) return false;
    bool takes_origins = false;
    for_each_operand(inst, [&](LaneId operand) {
      const LaneInst& from = at(program, operand);
      const bool may_be_shared = operand == value || from.op == LaneOp::constant;
      takes_origins |= !may_be_shared && is_origin[static_cast<size_t>(operand)];
      takes_origins |= bits_of(from.type) == 64;  // a constant too: vectors have half of its lanes
    });
    if (takes_origins) return false;
    is_used_in_computing |= inst.op != LaneOp::store;
  }
  return has_wide_lanes && is_used_in_computing;
}

}  // namespace

LaneId value_after_wide_lanes(const LaneProgram& program) {
  for (LaneId id = 0; id < static_cast<LaneId>(program.code.size()); ++id) {
    const LaneInst& inst = at(program, id);
    const bool has_half_width =
        bits_of(inst.type) == 32 && !is_mask(inst.type) && inst.op != LaneOp::constant;
    if (has_half_width && inst.op != LaneOp::store && is_after_wide_lanes(program, id)) return id;
  }
  return no_lane;
}

LaneProgram with_joined_halves(const LaneProgram& program) {
  const LaneId value = value_after_wide_lanes(program);
  const std::vector<bool> is_origin = origins_of(program, value);
  ProgramCopy joined(program);
  for (size_t i = 0; i < program.code.size(); ++i) {
    if (is_origin[i]) joined.copy(i);
  }
  joined.join(static_cast<size_t>(value));
  for (size_t i = 0; i < program.code.size(); ++i) {
    if (!is_origin[i]) joined.copy(i);
  }
  return joined.take();
}

}  // namespace castor::jit
