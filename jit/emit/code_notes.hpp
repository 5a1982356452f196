// SPDX-License-Identifier: Apache-2.0
// What emitters say of the code that they emit, for listings and the port model.
#pragma once

#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "jit/code.hpp"

namespace castor::jit {

/// Sections contain each other, as the functions that emit them do: when one ends, the section
/// around it goes on. Code outside of all sections is noted as CodeSection::none.
class CodeNotes {
 public:
  /// The code from `offset` on is what `note` says.
  void begin(uint32_t offset, CodeNote note) {
    around_.push_back(std::exchange(current_, std::move(note)));
    add(offset);
  }
  /// The code from `offset` on is of the section around the last one again. For destructors: want
  /// of memory shows in `move_to`.
  void end(uint32_t offset) noexcept {
    current_ = std::move(around_.back());
    around_.pop_back();
    try {
      add(offset);
    } catch (const std::bad_alloc&) {
      lacks_memory_ = true;
    }
  }
  const CodeNote& current() const { return current_; }
  void add(CodeLoop loop) { loops_.push_back(std::move(loop)); }
  /// Lanes of equal text are one: emitters of one program may differ in their stores alone.
  void add(CodeLane lane) {
    for (const CodeLane& known : lanes_) {
      if (known.text == lane.text) return;
    }
    lanes_.push_back(std::move(lane));
  }

  /// `end`: of the instructions.
  void move_to(MachineCode& code, uint32_t end) {
    if (lacks_memory_) throw std::bad_alloc();
    while (!notes_.empty() && notes_.back().offset >= end) notes_.pop_back();
    code.notes = std::move(notes_);
    code.loops = std::move(loops_);
    code.lanes = std::move(lanes_);
  }

 private:
  /// Stretches without code have no note, and neighbours that agree have one.
  void add(uint32_t offset) {
    if (!notes_.empty() && notes_.back().offset == offset) notes_.pop_back();
    if (!notes_.empty() && notes_.back().agrees_with(current_)) return;
    notes_.push_back(current_);
    notes_.back().offset = offset;
  }

  CodeNote current_;
  std::vector<CodeNote> around_;
  std::vector<CodeNote> notes_;
  std::vector<CodeLoop> loops_;
  std::vector<CodeLane> lanes_;
  bool lacks_memory_ = false;
};

}  // namespace castor::jit
