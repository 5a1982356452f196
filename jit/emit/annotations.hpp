// SPDX-License-Identifier: Apache-2.0
// Notes on the code of a nest, for listings and the port model.
#pragma once

#include <string>
#include <utility>

#include "jit/code.hpp"
#include "jit/emit/assembler.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {

/// Collects notes and loops while code is emitted, if they are wanted.
class Annotations {
 public:
  /// `folds_rows`: whether the nest's accumulators are in registers in its loops.
  Annotations(const Assembler& code, const Nest& nest, bool folds_rows, bool wanted)
      : code_(code), nest_(nest), folds_rows_(folds_rows), wanted_(wanted) {}

  /// Says which part the code from here on is.
  void note(std::string part, std::string text = "", std::string origin = "") {
    if (!wanted_) return;
    notes_.push_back({position(), std::move(part), std::move(text), std::move(origin)});
  }

  /// Says that the code from `begin` to here is a loop that does `elements` elements per iteration.
  void end_loop(std::string name, size_t begin, int64_t elements) {
    if (!wanted_) return;
    CodeLoop loop{.begin = static_cast<uint32_t>(begin),
                  .end = position(),
                  .elements = elements,
                  .name = std::move(name)};
    for (size_t k = 0; k < nest_.operands(); ++k) {
      const int64_t bytes = elements * bits_of(nest_.element(k)) / 8;
      const bool is_input = k < nest_.inputs.size();
      const bool is_accumulator = !is_input && nest_.program.folds();
      if (is_accumulator && folds_rows_) continue;  // it is in registers
      if (is_input || is_accumulator) loop.load_bytes += bytes;
      if (!is_input) loop.store_bytes += bytes;
    }
    loops_.push_back(std::move(loop));
  }

  void move_to(MachineCode& machine_code) {
    machine_code.notes = std::move(notes_);
    machine_code.loops = std::move(loops_);
  }

 private:
  uint32_t position() const { return static_cast<uint32_t>(code_.getSize()); }

  const Assembler& code_;
  const Nest& nest_;
  const bool folds_rows_;
  const bool wanted_;
  std::vector<CodeNote> notes_;
  std::vector<CodeLoop> loops_;
};

}  // namespace castor::jit
