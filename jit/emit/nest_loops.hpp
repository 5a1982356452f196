// SPDX-License-Identifier: Apache-2.0
// The loops of a nest, for listings and the port model.
#pragma once

#include <string>
#include <utility>

#include "jit/emit/assembler.hpp"
#include "jit/emit/control_flow.hpp"
#include "jit/emit/frame.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {

/// Knows what an iteration reads and writes.
class NestLoops {
 public:
  /// `folds_rows`: whether the nest's accumulators are in registers in its loops.
  NestLoops(Assembler& code, const Nest& nest, const NestForm& form, const Frame& frame,
            bool folds_rows)
      : code_(code), nest_(nest), form_(form), frame_(frame), folds_rows_(folds_rows) {}

  /// Emits `body`, an iteration that does `elements` elements, so that it is repeated from
  /// gpr::index on while another iteration ends at gpr::extent or before.
  template <class Body>
  void emit_main_loop(int elements, const Body& body) {
    const Section loop = code_.section(CodeSection::main_loop);
    code_.lea(gpr::limit, code_.ptr[gpr::extent - elements]);
    code_.cmp(gpr::index, gpr::limit);
    emit_unless(code_, Condition::greater, [&] {
      code_.align_to(32);
      const uint32_t begin = code_.position();
      emit_loop_while(code_, Condition::less_equal, [&] {
        body();
        const Section next = code_.section(CodeSection::next_iteration);
        code_.add(gpr::index, elements);
        code_.cmp(gpr::index, gpr::limit);
      });
      end_loop("main loop", begin, elements);
    });
  }

  /// The same, with the lines of a later iteration prefetched first, where the form has that: for
  /// loops that wait for memory rather than for ports.
  template <class Body>
  void emit_prefetching_loop(int elements, const Body& body) {
    emit_main_loop(elements, [&] {
      emit_prefetches(elements);
      body();
    });
  }

  /// Says that the code from `begin` to here is a loop that does `elements` elements per iteration.
  void end_loop(std::string name, uint32_t begin, int64_t elements) {
    if (!code_.annotates()) return;
    CodeLoop loop{.begin = begin, .elements = elements, .name = std::move(name)};
    for (size_t k = 0; k < nest_.operands(); ++k) {
      const int64_t bytes = elements * bits_of(nest_.element(k)) / 8;
      const bool is_input = k < nest_.inputs.size();
      const bool is_accumulator = !is_input && nest_.program.folds();
      if (is_accumulator && folds_rows_) continue;  // it is in registers
      if (is_input || is_accumulator) loop.load_bytes += bytes;
      if (!is_input) loop.store_bytes += bytes;
    }
    code_.note_loop(std::move(loop));
  }

 private:
  void emit_prefetches(int elements);

  Assembler& code_;
  const Nest& nest_;
  const NestForm& form_;
  const Frame& frame_;
  const bool folds_rows_;
};

}  // namespace castor::jit
