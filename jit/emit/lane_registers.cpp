// SPDX-License-Identifier: Apache-2.0
// The register allocation of LaneEmitter: which value has which register, and spills and reloads.
#include <algorithm>
#include <bit>
#include <cassert>

#include "jit/emit/lane_emitter.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

bool LaneEmitter::is_operand(LaneId id) const {
  return std::find(operands_.begin(), operands_.end(), id) != operands_.end();
}

void LaneEmitter::release(LaneId id) {
  if (pinned_[static_cast<size_t>(id)]) return;
  Location& at = location(id);
  if (at.vector >= 0) free_vectors_ |= uint32_t{1} << at.vector;
  if (at.mask >= 0) free_masks_ |= uint32_t{1} << at.mask;
  if (at.slot >= 0 && !has_home(id)) free_slots_.push_back(at.slot);
  at = {.slot = has_home(id) ? at.slot : -1};
}

void LaneEmitter::release_dying_operands() {
  for (LaneId id : operands_) {
    // What keeps no register but is stored in memory is loaded again at each use.
    const bool reloads = is_constant(id) || has_home(id);
    if (last_use_[static_cast<size_t>(id)] == current_ || reloads) release(id);
  }
}

int LaneEmitter::next_use(LaneId id) const {
  for (size_t i = static_cast<size_t>(current_) + 1; i < program_.code.size(); ++i) {
    const LaneInst& inst = program_.code[i];
    bool found = false;
    for_each_operand(inst, [&](LaneId operand) { found |= operand == id; });
    if (found) return static_cast<int>(i);
  }
  return static_cast<int>(program_.code.size());
}

Xbyak::Address LaneEmitter::slot_address(int slot) {
  return code_.ptr[code_.rsp + static_cast<size_t>(spill_base_ + slot * 64)];
}

int LaneEmitter::take_slot() {
  if (free_slots_.empty()) return spill_slots_++;
  const int slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

void LaneEmitter::emit_store_in_slot(Location& at) {
  at.slot = take_slot();
  if (at.mask >= 0) {
    code_.kmovq(slot_address(at.slot), Xbyak::Opmask(at.mask));
  } else {
    code_.vmovups(slot_address(at.slot), vector_register(at.vector, target_.vector_bits()));
  }
}

void LaneEmitter::emit_spill(bool mask) {
  LaneId victim = no_lane;
  int farthest = -1;
  for (LaneId id = 0; id < current_; ++id) {
    const Location& at = location(id);
    const bool candidate = mask ? at.mask >= 0 : at.vector >= 0;
    if (!candidate || pinned_[static_cast<size_t>(id)] || is_operand(id)) continue;
    const int use = next_use(id);
    if (use > farthest) {
      farthest = use;
      victim = id;
    }
  }
  assert(victim != no_lane);
  if (victim == no_lane) throw Xbyak::Error(Xbyak::ERR_INTERNAL);
  Location& at = location(victim);
  if (at.slot < 0) {
    emit_store_in_slot(at);
    ++spills_;
  }
  if (mask) {
    free_masks_ |= uint32_t{1} << std::exchange(at.mask, -1);
  } else {
    free_vectors_ |= uint32_t{1} << std::exchange(at.vector, -1);
  }
}

int LaneEmitter::allocate_vector() {
  if (free_vectors_ == 0) emit_spill(false);
  const int index = std::countr_zero(free_vectors_);
  free_vectors_ &= ~(uint32_t{1} << index);
  return index;
}

int LaneEmitter::allocate_mask() {
  if (free_masks_ == 0) emit_spill(true);
  const int index = std::countr_zero(free_masks_);
  free_masks_ &= ~(uint32_t{1} << index);
  return index;
}

Xbyak::Xmm LaneEmitter::use(LaneId id) {
  const int bits = register_bits(type_of(id));
  Location& at = location(id);
  if (at.vector < 0) {
    const int vector = allocate_vector();
    location(id).vector = vector;
    if (is_constant(id)) {
      emit_constant(program_.code[static_cast<size_t>(id)], vector);
    } else {
      assert(at.slot >= 0);
      code_.vmovups(vector_register(vector, target_.vector_bits()), slot_address(at.slot));
    }
  }
  return vector_register(at.vector, bits);
}

LastOperand LaneEmitter::use_last(LaneId id) {
  const LaneInst& inst = program_.code[static_cast<size_t>(id)];
  const bool is_kept = location(id).vector >= 0;
  if (is_kept || has_avx512() || !is_constant(id) || inst.imm == 0) return LastOperand(use(id));
  const int bits = std::max(register_bits(inst.type), 128);
  const auto value = [&](int) { return static_cast<uint64_t>(inst.imm); };
  return LastOperand(code_.constant(lanes_constant(bits_of(inst.type), bits, value)));
}

Xbyak::Opmask LaneEmitter::use_mask(LaneId id) {
  Location& at = location(id);
  if (at.mask < 0) {
    at.mask = allocate_mask();
    code_.kmovq(Xbyak::Opmask(at.mask), slot_address(at.slot));
  }
  return Xbyak::Opmask(at.mask);
}

Xbyak::Xmm LaneEmitter::define() {
  release_dying_operands();
  return define_apart();
}

Xbyak::Opmask LaneEmitter::define_mask() {
  release_dying_operands();
  return Xbyak::Opmask(location(current_).mask = allocate_mask());
}

Xbyak::Xmm LaneEmitter::define_apart() {
  const int vector = allocate_vector();
  location(current_).vector = vector;
  return vector_register(vector, register_bits(type_of(current_)));
}

Xbyak::Xmm LaneEmitter::define_from(LaneId start) {
  const int bits = register_bits(type_of(current_));
  const Xbyak::Xmm from = use(start);
  const bool dies =
      last_use_[static_cast<size_t>(start)] == current_ && !pinned_[static_cast<size_t>(start)];
  if (dies) {
    location(current_).vector = std::exchange(location(start).vector, -1);
    return vector_register(from.getIdx(), bits);
  }
  const Xbyak::Xmm to = define_apart();
  code_.vmovaps(to, vector_register(from.getIdx(), bits));
  return to;
}

OwnedVector LaneEmitter::take(LaneId id) {
  const Xbyak::Xmm from = use(id);
  const bool dies =
      last_use_[static_cast<size_t>(id)] == current_ && !pinned_[static_cast<size_t>(id)];
  if (dies) {
    location(id).vector = -1;
    return {*this, from.getIdx()};
  }
  OwnedVector copy = scratch();
  const int bits = register_bits(type_of(id));
  code_.vmovaps(copy.as(bits), from);
  return copy;
}

/// A mask that is kept on the stack is tested there.
void LaneEmitter::emit_jump_if_any(LaneId mask, const Xbyak::Label& to) {
  if (has_home(mask)) {
    code_.cmp(code_.qword[slot_address(location(mask).slot).getRegExp()], 0);
  } else {
    const Xbyak::Opmask tested = use_mask(mask);
    code_.kortestq(tested, tested);
  }
  code_.jne(to, Xbyak::CodeGenerator::T_NEAR);
}

Xbyak::Xmm LaneEmitter::first_half(LaneId joined) {
  // What is hoisted is the same in both halves.
  return is_hoisted(joined) ? use(joined) : first_half_.as(128);
}

OwnedMask LaneEmitter::scratch_mask() { return {*this, allocate_mask()}; }

OwnedSlot LaneEmitter::scratch_slot() { return {*this, take_slot()}; }

Xbyak::Address LaneEmitter::address(const OwnedSlot& slot, int offset) {
  return code_.ptr[code_.rsp + static_cast<size_t>(spill_base_ + slot.index() * 64 + offset)];
}

OwnedVector LaneEmitter::scratch() { return {*this, allocate_vector()}; }

}  // namespace castor::jit
