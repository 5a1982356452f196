// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/frame_recorder.hpp"

#include <algorithm>

namespace castor::jit {

namespace {

using Kind = FrameChange::Kind;

constexpr uint8_t rsp = dwarf_number(4);

bool is_by_stack(const FrameChange& cfa) {
  return cfa.kind == Kind::cfa_register && cfa.reg == rsp;
}

/// Whether a function must leave a register as it was.
bool is_callers(uint8_t reg) {
  constexpr uint32_t rbx_rbp_r12_to_r15 = 0xf048;
  return (rbx_rbp_r12_to_r15 >> reg & 1) != 0;
}

bool is_same_rule(const FrameChange& a, const FrameChange& b) {
  return a.kind == b.kind && a.reg == b.reg && a.value == b.value && a.slot == b.slot;
}

}  // namespace

bool FrameState::has_saved(uint8_t reg) const {
  return std::ranges::any_of(std::span(saved).first(saved_count),
                             [reg](const Saved& each) { return each.reg == reg; });
}

FrameRecorder::FrameRecorder() {
  constexpr size_t usual_changes = 24;
  changes_.reserve(usual_changes);
  state_.cfa = {.kind = Kind::cfa_register, .reg = rsp, .value = 8};
}

void FrameRecorder::add(size_t offset, FrameChange change) {
  change.offset = static_cast<uint32_t>(offset);
  changes_.push_back(change);
}

void FrameRecorder::set_cfa(size_t offset, FrameChange cfa) {
  state_.cfa = cfa;
  add(offset, cfa);
}

void FrameRecorder::save(size_t offset, uint8_t reg, int32_t value) {
  state_.saved[state_.saved_count++] = {reg, value};
  add(offset, {.kind = Kind::saved, .reg = reg, .value = value});
}

void FrameRecorder::restore(size_t offset, uint8_t reg) {
  const auto all = std::span(state_.saved).first(state_.saved_count);
  const auto kept_end = std::remove_if(
      all.begin(), all.end(), [reg](const FrameState::Saved& each) { return each.reg == reg; });
  state_.saved_count = static_cast<size_t>(kept_end - all.begin());
  add(offset, {.kind = Kind::restored, .reg = reg});
}

void FrameRecorder::lower_stack(size_t offset, int32_t bytes) {
  state_.depth += bytes;
  FrameChange cfa = state_.cfa;
  if (is_by_stack(cfa)) {
    cfa.value = state_.depth;
  } else if (cfa.kind == Kind::cfa_memory) {
    cfa.slot += bytes;
  } else {
    return;
  }
  set_cfa(offset, cfa);
}

void FrameRecorder::push(size_t offset, uint8_t reg) {
  lower_stack(offset, 8);
  save(offset, reg, -state_.depth);
}

void FrameRecorder::pop(size_t offset, uint8_t reg) {
  restore(offset, reg);
  lower_stack(offset, -8);
}

void FrameRecorder::find_by_register(size_t offset, uint8_t reg) {
  set_cfa(offset, {.kind = Kind::cfa_register, .reg = reg, .value = state_.depth});
}

void FrameRecorder::find_by_memory(size_t offset, int32_t slot) {
  set_cfa(offset, {.kind = Kind::cfa_memory, .value = state_.cfa.value, .slot = slot});
}

void FrameRecorder::find_by_stack(size_t offset, int32_t depth) {
  state_.depth = depth;
  set_cfa(offset, {.kind = Kind::cfa_register, .reg = rsp, .value = depth});
}

void FrameRecorder::borrow(size_t offset, uint8_t reg, int32_t slot) {
  if (is_callers(reg) && !state_.has_saved(reg)) save(offset, reg, slot - state_.depth);
}

void FrameRecorder::give_back(size_t offset, uint8_t reg, int32_t slot) {
  const auto all = std::span(state_.saved).first(state_.saved_count);
  const auto saved = std::ranges::find(all, reg, &FrameState::Saved::reg);
  if (saved != all.end() && saved->value == slot - state_.depth) restore(offset, reg);
}

size_t FrameRecorder::make_room(size_t offset) {
  lower_stack(offset, 0);
  return changes_.size();
}

void FrameRecorder::fill_in_room(size_t room, int32_t bytes) {
  // The change that made the room is the last one before those that follow it.
  const size_t first = is_by_stack(state_.cfa) ? room - 1 : room;
  for (FrameChange& change : std::span(changes_).subspan(first)) {
    if (change.kind == Kind::cfa_register) change.value += bytes;
    if (change.kind == Kind::saved) change.value -= bytes;
  }
  state_.depth += bytes;
  if (is_by_stack(state_.cfa)) state_.cfa.value = state_.depth;
}

void FrameRecorder::resume(size_t offset, const FrameState& state) {
  if (!is_same_rule(state.cfa, state_.cfa)) set_cfa(offset, state.cfa);
  const FrameState before = state_;
  for (const FrameState::Saved& each : std::span(before.saved).first(before.saved_count)) {
    if (!state.has_saved(each.reg)) restore(offset, each.reg);
  }
  for (const FrameState::Saved& each : std::span(state.saved).first(state.saved_count)) {
    if (!before.has_saved(each.reg)) save(offset, each.reg, each.value);
  }
  state_ = state;
}

}  // namespace castor::jit
