// SPDX-License-Identifier: Apache-2.0
#include "jit/lane/optimize.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>
#include <vector>

namespace castor::jit {

namespace {

bool compute_the_same(const LaneInst& x, const LaneInst& y) {
  const auto tied = [](const LaneInst& i) {
    return std::tie(i.op, i.type, i.a, i.b, i.c, i.mask, i.imm, i.table);
  };
  return tied(x) == tied(y);
}

size_t hash_of(const LaneInst& inst) {
  constexpr uint64_t odd = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio
  uint64_t hash = static_cast<uint64_t>(inst.op) << 8 | static_cast<uint64_t>(inst.type);
  for (int64_t part : {int64_t{inst.a}, int64_t{inst.b}, int64_t{inst.c}, int64_t{inst.mask},
                       inst.imm, int64_t{inst.table}}) {
    hash = (std::rotl(hash, 23) ^ static_cast<uint64_t>(part)) * odd;
  }
  return static_cast<size_t>(hash >> 32);
}

/// Replaces uses of an instruction by an equal earlier one. (No load follows a store to the same
/// memory, see load_before_storing.)
void share_equals(LaneProgram& program) {
  const size_t slots = std::bit_ceil(2 * program.code.size());
  std::vector<LaneId> table(slots, no_lane);  // by hash, with linear probing
  std::vector<LaneId> first_equal(program.code.size());
  for (size_t i = 0; i < program.code.size(); ++i) {
    LaneInst& inst = program.code[i];
    for_each_operand(inst, [&](LaneId& id) { id = first_equal[static_cast<size_t>(id)]; });
    first_equal[i] = static_cast<LaneId>(i);
    if (inst.op == LaneOp::store) continue;
    size_t slot = hash_of(inst) & (slots - 1);
    while (table[slot] != no_lane &&
           !compute_the_same(program.code[static_cast<size_t>(table[slot])], inst)) {
      slot = (slot + 1) & (slots - 1);
    }
    if (table[slot] == no_lane) table[slot] = static_cast<LaneId>(i);
    first_equal[i] = table[slot];
  }
}

std::vector<int> count_uses(const LaneProgram& program) {
  std::vector<int> uses(program.code.size(), 0);
  for (const LaneInst& inst : program.code) {
    for_each_operand(inst, [&](LaneId id) { ++uses[static_cast<size_t>(id)]; });
  }
  return uses;
}

/// Whether AVX-512 has the operation under a mask whose granularity is the lane.
bool is_maskable(const LaneInst& inst) {
  const int bits = bits_of(inst.type);
  switch (inst.op) {
    case LaneOp::add:
    case LaneOp::sub:
    case LaneOp::min_signed:
    case LaneOp::min_unsigned:
    case LaneOp::max_signed:
    case LaneOp::max_unsigned:
    case LaneOp::absolute:
    case LaneOp::leading_zeros: return true;
    case LaneOp::bit_and:
    case LaneOp::bit_or:
    case LaneOp::bit_xor:
    case LaneOp::bit_andnot: return bits >= 32;
    case LaneOp::mul:
    case LaneOp::shift_left:
    case LaneOp::shift_right:
    case LaneOp::shift_right_signed:
    case LaneOp::shift_left_by:
    case LaneOp::shift_right_by:
    case LaneOp::shift_right_signed_by: return bits >= 16;
    case LaneOp::float_add:
    case LaneOp::float_sub:
    case LaneOp::float_mul:
    case LaneOp::float_div:
    case LaneOp::float_sqrt:
    case LaneOp::range_min:
    case LaneOp::range_max:
    case LaneOp::range_magnitude:
    case LaneOp::range_magnitude_from:
    case LaneOp::float_min:
    case LaneOp::float_max:
    case LaneOp::round:
    case LaneOp::signed_to_float:
    case LaneOp::unsigned_to_float:
    case LaneOp::float_to_signed:
    case LaneOp::float_to_unsigned: return true;
    default: return false;
  }
}

void fuse_selects(LaneProgram& program) {
  const std::vector<int> uses = count_uses(program);
  for (LaneInst& inst : program.code) {
    if (inst.op != LaneOp::select) continue;
    const LaneInst& chosen = program.code[static_cast<size_t>(inst.a)];
    const bool only_here = uses[static_cast<size_t>(inst.a)] == 1;
    if (!only_here || !is_maskable(chosen) || chosen.mask != no_lane) continue;
    const LaneId mask = inst.mask;
    const LaneId passthrough = inst.c;
    inst = chosen;
    inst.mask = mask;
    inst.c = passthrough;
  }
}

bool is_logic(const LaneInst& inst) {
  const bool is_of_bits = inst.op == LaneOp::bit_and || inst.op == LaneOp::bit_or ||
                          inst.op == LaneOp::bit_xor || inst.op == LaneOp::bit_andnot;
  return is_of_bits && inst.mask == no_lane;
}

/// One bit of the result.
bool logic_of(LaneOp op, bool a, bool b) {
  switch (op) {
    case LaneOp::bit_and: return a && b;
    case LaneOp::bit_or: return a || b;
    case LaneOp::bit_xor: return a != b;
    default: return !a && b;
  }
}

/// Two operations, of which `outer` alone reads the result of `inner`, as one. Its first operand is
/// overwritten, so that is one that nothing else reads, if there is one.
LaneInst joined_logic(const LaneProgram& program, const std::vector<int>& uses,
                      const LaneInst& outer, const LaneInst& inner, bool inner_is_first) {
  std::array<LaneId, 3> ids = {inner.a, inner.b, inner_is_first ? outer.b : outer.a};
  std::array<int, 3> index = {0, 1, 2};  // that inner's operands and the other have among them
  const auto cost = [&](int i) {
    const auto id = static_cast<size_t>(ids[static_cast<size_t>(i)]);
    return program.code[id].op == LaneOp::constant ? 2 : uses[id] > 1 ? 1 : 0;
  };
  const int first = *std::ranges::min_element(index, {}, cost);
  std::swap(ids[0], ids[static_cast<size_t>(first)]);
  std::swap(index[0], index[static_cast<size_t>(first)]);
  LaneInst joined = outer;
  joined.op = LaneOp::bit_ternary;
  joined.a = ids[0];
  joined.b = ids[1];
  joined.c = ids[2];
  for (int bits = 0; bits < 8; ++bits) {
    const auto value = [&](int i) {
      return (bits >> (2 - index[static_cast<size_t>(i)]) & 1) != 0;
    };
    const bool of_inner = logic_of(inner.op, value(0), value(1));
    const bool result = inner_is_first ? logic_of(outer.op, of_inner, value(2))
                                       : logic_of(outer.op, value(2), of_inner);
    joined.imm |= int64_t{result} << bits;
  }
  return joined;
}

/// AVX-512: any function of three operands is one instruction.
void join_logic(LaneProgram& program) {
  const std::vector<int> uses = count_uses(program);
  for (LaneInst& inst : program.code) {
    if (!is_logic(inst)) continue;
    for (const bool first : {true, false}) {
      const LaneId id = first ? inst.a : inst.b;
      const LaneInst& inner = program.code[static_cast<size_t>(id)];
      if (!is_logic(inner) || uses[static_cast<size_t>(id)] != 1) continue;
      inst = joined_logic(program, uses, inst, inner, first);
      break;
    }
  }
}

/// Whether the operation makes NaNs quiet itself, of the operand that it would hand on.
bool quiets(LaneOp op) {
  switch (op) {
    case LaneOp::float_add:
    case LaneOp::float_sub:
    case LaneOp::float_mul:
    case LaneOp::float_div:
    case LaneOp::float_quotient:
    case LaneOp::float_sqrt:
    case LaneOp::f32_to_f64: return true;
    default: return false;
  }
}

/// x + -0, which is x with NaNs made quiet.
bool is_quieting(const LaneProgram& program, const LaneInst& inst) {
  if (inst.op != LaneOp::float_add || inst.mask != no_lane) return false;
  const LaneInst& zero = program.code[static_cast<size_t>(inst.b)];
  const uint64_t minus_zero = uint64_t{1} << (bits_of(inst.type) - 1);
  return zero.op == LaneOp::constant && bits_of(zero.type) == bits_of(inst.type) &&
         static_cast<uint64_t>(zero.imm) == minus_zero;
}

/// Hands values on as they are where all that reads them makes NaNs quiet.
void drop_quieting(LaneProgram& program) {
  std::vector<bool> is_read_as_is(program.code.size(), false);
  for (const LaneInst& inst : program.code) {
    const bool as_is = !quiets(inst.op) || inst.mask != no_lane;
    for_each_operand(inst, [&](LaneId id) {
      if (as_is) is_read_as_is[static_cast<size_t>(id)] = true;
    });
  }
  for (LaneInst& inst : program.code) {
    for_each_operand(inst, [&](LaneId& id) {
      const LaneInst& from = program.code[static_cast<size_t>(id)];
      if (!is_read_as_is[static_cast<size_t>(id)] && is_quieting(program, from)) id = from.a;
    });
  }
}

void drop_dead(LaneProgram& program) {
  std::vector<bool> needed(program.code.size(), false);
  for (size_t i = program.code.size(); i-- > 0;) {
    const LaneInst& inst = program.code[i];
    if (inst.op == LaneOp::store) needed[i] = true;
    if (!needed[i]) continue;
    for_each_operand(inst, [&](LaneId id) { needed[static_cast<size_t>(id)] = true; });
  }
  std::vector<LaneId> renumbered(program.code.size(), no_lane);
  std::vector<LaneInst> kept;
  for (size_t i = 0; i < program.code.size(); ++i) {
    if (!needed[i]) continue;
    renumbered[i] = static_cast<LaneId>(kept.size());
    kept.push_back(program.code[i]);
    for_each_operand(kept.back(), [&](LaneId& id) { id = renumbered[static_cast<size_t>(id)]; });
  }
  program.code = std::move(kept);
}

/// Moves loads that follow a store before it: an output may be an input's own memory, and
/// then nothing may be read after it was written.
void load_before_storing(LaneProgram& program) {
  const auto is_store = [](const LaneInst& inst) { return inst.op == LaneOp::store; };
  const auto first = std::find_if(program.code.begin(), program.code.end(), is_store);
  const auto at = static_cast<size_t>(first - program.code.begin());
  std::vector<size_t> order;
  for (size_t i = 0; i < at; ++i) order.push_back(i);
  for (const bool loads : {true, false}) {
    for (size_t i = at; i < program.code.size(); ++i) {
      if ((program.code[i].op == LaneOp::load) == loads) order.push_back(i);
    }
  }
  std::vector<LaneId> renumbered(program.code.size());
  for (size_t i = 0; i < order.size(); ++i) renumbered[order[i]] = static_cast<LaneId>(i);
  std::vector<LaneInst> reordered;
  for (size_t from : order) {
    reordered.push_back(program.code[from]);
    for_each_operand(reordered.back(),
                     [&](LaneId& id) { id = renumbered[static_cast<size_t>(id)]; });
  }
  program.code = std::move(reordered);
}

}  // namespace

void optimize(LaneProgram& program, const Target& target) {
  share_equals(program);
  drop_quieting(program);
  drop_dead(program);
  if (target.has_avx512()) {
    fuse_selects(program);
    join_logic(program);
  }
  drop_dead(program);
  load_before_storing(program);
}

}  // namespace castor::jit
