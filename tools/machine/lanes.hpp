// SPDX-License-Identifier: Apache-2.0
// How rows of the table are made of functions: one that runs lane by lane, or one of the whole
// instruction. Functions are lambdas without captures, so that a row names each once for both
// domains.
#pragma once

#include "tools/machine/meaning.hpp"

namespace castor::machine {

/// One lane's operands.
template <class D>
struct Lane {
  using Bits = typename D::Bits;

  D& domain;
  Bits a;    ///< the first operand's after the destination
  Bits b;    ///< the second one's
  Bits c;    ///< the third one's
  Bits old;  ///< the destination's
  int immediate;
  Rounding rounding;

  Bits constant(int width, uint64_t value) const { return domain.constant(width, value); }
};

template <class D>
Lane<D> lane_of(Step<D>& step, const Row& row, int i) {
  return {.domain = step.domain,
          .a = step.source(0, row.source_bits, i),
          .b = step.source(1, row.source_bits, i),
          .c = step.source(2, row.source_bits, i),
          .old = lane(step.domain, step.old, row.bits, i),
          .immediate = step.immediate,
          .rounding = step.rounding};
}

/// Each lane of the result by a function of a Lane.
template <class Function>
struct EachLane {
  template <class D>
  void operator()(Step<D>& step, const Row& row) const {
    for (int i = 0; i < row.lanes(step.vector_bits); ++i) {
      set_lane(step.domain, step.result, i, Function{}(lane_of(step, row, i)));
    }
  }
};

/// Each bit of the opmask by a function of a Lane, whose `old` has no meaning.
template <class Function>
struct EachBit {
  template <class D>
  void operator()(Step<D>& step, const Row& row) const {
    for (int i = 0; i < row.lanes(step.vector_bits); ++i) {
      step.result_mask[static_cast<size_t>(i)] = Function{}(lane_of(step, row, i));
    }
  }
};

template <class D, class Function>
void run(Step<D>& step, const Row& row) {
  Function{}(step, row);
}

/// A row whose function takes the Step and the Row.
template <class Function>
constexpr Row row_by(ZydisMnemonic mnemonic, int bits, int source_bits, Function,
                     Effect effect = Effect::lanes, Touched touched = Touched::all) {
  return {.mnemonic = mnemonic,
          .bits = static_cast<uint8_t>(bits),
          .source_bits = static_cast<uint8_t>(source_bits),
          .effect = effect,
          .touched = touched,
          .on_numbers = run<Numbers, Function>,
          .on_terms = run<Symbols, Function>};
}
/// Lanes of one width.
template <class Function>
constexpr Row lanes(ZydisMnemonic mnemonic, int bits, Function) {
  return row_by(mnemonic, bits, bits, EachLane<Function>{}, Effect::lanes, Touched::lanes);
}
/// Lanes that become others of another width.
template <class Function>
constexpr Row resized(ZydisMnemonic mnemonic, int bits, int source_bits, Function) {
  return row_by(mnemonic, bits, source_bits, EachLane<Function>{}, Effect::lanes, Touched::lanes);
}
template <class Function>
constexpr Row to_mask(ZydisMnemonic mnemonic, int bits, Function) {
  return row_by(mnemonic, bits, bits, EachBit<Function>{}, Effect::mask, Touched::lanes);
}

}  // namespace castor::machine
