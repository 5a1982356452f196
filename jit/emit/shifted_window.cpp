// SPDX-License-Identifier: Apache-2.0
// Every eighth element at least begins at the same bit, so that one vector of eight factors, powers
// of two, is right for all.
#include "jit/emit/shifted_window.hpp"

#include "ir/types/storage.hpp"
#include "jit/emit/control_flow.hpp"
#include "jit/emit/op_helpers.hpp"

namespace castor::jit {

namespace {

using namespace copying;

constexpr int vector_bits = 256;  ///< on all tiers: there is little to do
constexpr int block_elements = vector_bits / 16;

using Words = std::array<uint16_t, block_elements>;

constexpr Words words_of(uint16_t value) {
  Words words;
  words.fill(value);
  return words;
}

class WindowShift {
 public:
  WindowShift(LaneEmitter& emitter, const Frame& frame, const WindowOperand& at)
      : emitter_(emitter),
        code_(emitter.code()),
        window_(frame.staging_offset(at.operand)),
        at_(at),
        bits_(bits_of(at.element)),
        factors_(emitter.scratch()),
        masks_(emitter.scratch()),
        words_(emitter.scratch()) {}

  void emit() {
    emit_positions();
    emit_factors();
    emit_masks();
    emit_shift();
  }

 private:
  void emit_positions();
  void emit_factors();
  void emit_masks();
  void emit_shift();

  LaneEmitter& emitter_;
  Assembler& code_;
  const int window_;
  const WindowOperand& at_;
  const int bits_;
  const OwnedVector factors_;
  const OwnedVector masks_;
  const OwnedVector words_;
};

/// The bits at which elements begin, counted from the operand's first byte, modulo 2^16.
void WindowShift::emit_positions() {
  constexpr Words numbers = {0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7};
  const Xmm steps = words_.as(vector_bits);
  const Xmm positions = factors_.as(vector_bits);
  code_.imul(value.cvt32(), at_.step, bits_);
  code_.vmovd(words_.as(128), value.cvt32());
  code_.vpbroadcastw(steps, words_.as(128));
  code_.vpmullw(steps, steps, code_.constant_of(numbers));
  code_.imul(value.cvt32(), element.cvt32(), bits_);
  code_.vmovd(factors_.as(128), value.cvt32());
  code_.vpbroadcastw(positions, factors_.as(128));
  code_.vpaddw(positions, positions, steps);
}

/// Two to the power of where each begins in its byte, looked up; 0x80 in the high byte gives 0.
void WindowShift::emit_factors() {
  const bool from_highest = info(at_.element).order == StorageOrder::msb_first;
  std::array<uint8_t, 32> powers = {};
  for (size_t i = 0; i < powers.size(); ++i) {
    powers[i] = static_cast<uint8_t>(1u << (i % 8 ^ (from_highest ? 8u - bits_ : 0u)));
  }
  const Xmm positions = factors_.as(vector_bits);
  const Xmm table = words_.as(vector_bits);
  code_.vmovups(table, code_.constant_of(words_of(7)));
  emit_and(emitter_, positions, positions, table);
  code_.vpaddw(positions, positions, code_.constant_of(words_of(0x8000)));
  code_.vmovups(table, code_.constant_of(powers));
  code_.vpshufb(positions, table, positions);
}

void WindowShift::emit_masks() {
  code_.mov(value.cvt32(), (1u << bits_) - 1);
  code_.vmovd(masks_.as(128), value.cvt32());
  code_.vpbroadcastw(masks_.as(vector_bits), masks_.as(128));
}

void WindowShift::emit_shift() {
  const Xmm words = words_.as(vector_bits);
  const Xbyak::RegExp window = gpr::stack + window_;
  code_.xor_(offset.cvt32(), offset.cvt32());
  emit_loop_while(code_, Condition::less, [&] {
    code_.vpmovzxbw(words, code_.ptr[window + offset]);
    emit_and(emitter_, words, words, masks_.as(vector_bits));
    code_.vpmullw(words, words, factors_.as(vector_bits));
    code_.vmovups(code_.ptr[window + offset * 2 + at_.window_elements], words);
    code_.add(offset, block_elements);
    code_.cmp(offset, count);
  });
}

}  // namespace

void emit_shift_window(LaneEmitter& emitter, const Frame& frame, const WindowOperand& at) {
  WindowShift(emitter, frame, at).emit();
}

}  // namespace castor::jit
