// SPDX-License-Identifier: Apache-2.0
// A block of n x n elements, n = 16 bytes / element, is n vectors of 16 bytes. It is transposed in
// log2(n) rounds, each of which interleaves vectors i and i + n/2 to 2i and 2i + 1: a round moves
// the top bit of a column's number to the end of the row's number, and vice versa. The halves of
// 32-byte vectors hold two adjacent blocks. The last blocks of rows and columns
// overlap the ones before them, so there are no remainders.
#include "jit/emit/transpose_emitter.hpp"

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "jit/emit/control_flow.hpp"
#include "jit/emit/tile_copy.hpp"

namespace castor::jit {

namespace {

using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::Xmm;
using Xbyak::Ymm;

const Reg64 arguments(Operand::RDI);
// Addresses of the next blocks; `columns` is the number of columns after them.
const Reg64 source(Operand::RSI);
const Reg64 destination(Operand::RDX);
const Reg64 columns(Operand::R8);

const Reg64 source_step(Operand::RCX);      ///< between neighbours along a row of the destination
const Reg64 destination_step(Operand::R9);  ///< between rows
const Reg64 rows_left(Operand::R10);
const Reg64 block_source(Operand::R11);
const Reg64 block_destination(Operand::RBX);
const Reg64 cursor(Operand::RAX);
const Reg64 far_cursor(Operand::R15);  ///< in the second of two blocks
const Reg64 count(Operand::R15);       ///< between blocks
const Reg64 source_step_3(Operand::R12);
const Reg64 destination_step_3(Operand::R13);
const Reg64 block_step(Operand::R14);  ///< from a block's source to the adjacent block

const std::array saved_registers = {block_destination, far_cursor, source_step_3,
                                    destination_step_3, block_step};

constexpr int vector_bytes = transposed_block_bytes;
constexpr int max_registers = 15;  // that hold vectors; one more is needed to interleave them
constexpr int in_memory = -1;      // instead of the number of a register

/// Addresses of consecutive rows, from the cursor on, which it moves every four rows.
class RowAddresses {
 public:
  RowAddresses(Assembler& code, const Reg64& at, const Reg64& step, const Reg64& step_3)
      : code_(code), at_(at), step_(step), step_3_(step_3) {}

  Xbyak::Address emit_next() {
    if (row_ > 0 && row_ % 4 == 0) code_.lea(at_, code_.ptr[at_ + step_ * 4]);
    switch (row_++ % 4) {
      case 0: return code_.ptr[at_];
      case 1: return code_.ptr[at_ + step_];
      case 2: return code_.ptr[at_ + step_ * 2];
      default: return code_.ptr[at_ + step_3_];
    }
  }

 private:
  Assembler& code_;
  const Reg64 at_;
  const Reg64 step_;
  const Reg64 step_3_;
  int row_ = 0;
};

class TransposeEmitter {
 public:
  TransposeEmitter(Assembler& code, int element_bytes)
      : code_(code), bytes_(element_bytes), n_(vector_bytes / element_bytes) {
    for (int i = 0; i < n_; ++i) vectors_.push_back(i == max_registers ? in_memory : i);
  }

  void emit() {
    Xbyak::Label done;
    emit_entry();
    const Section loop = code_.section(CodeSection::copy_loop);
    code_.cmp(columns, 2 * n_);
    emit_unless(code_, Condition::less, [&] { emit_blocks(2, done); });
    emit_blocks(1, done);
    code_.L(done);
    emit_exit();
  }

 private:
  void emit_entry();
  void emit_exit();
  void emit_blocks(int blocks, Xbyak::Label& done);
  void emit_row_of_blocks(int blocks);
  void emit_advance(const Reg64& left, int max, Xbyak::Label& done);
  void emit_load_block(int blocks);
  void emit_interleave_rounds(int blocks);
  std::pair<int, int> emit_interleave(int a, int b, int blocks);
  void emit_unpack_low(const Xmm& to, const Xmm& a, const Operand& b);
  void emit_unpack_high(const Xmm& to, const Xmm& a, const Operand& b);
  void emit_store_block(int blocks);

  Xmm vector(int number, int blocks) const {
    return vector_register(number, 8 * vector_bytes * blocks);
  }
  Xbyak::Address argument(size_t offset) { return code_.qword[arguments + offset]; }
  int number_of(int i) const { return vectors_[static_cast<size_t>(i)]; }

  Assembler& code_;
  const int bytes_;
  const int n_;
  std::vector<int> vectors_;  ///< registers of vectors 0 to n - 1
  int free_ = max_registers;
  /// The sixteenth vector: below the stack pointer, where a function that calls no other may write.
  const Xbyak::Address memory_ = code_.ptr[Reg64(Operand::RSP) - 2 * vector_bytes];
};

void TransposeEmitter::emit_entry() {
  const Section entry = code_.section(CodeSection::entry);
  code_.push_all(saved_registers);
  code_.mov(source, argument(offsetof(TileCopy, source)));
  code_.mov(source_step, argument(offsetof(TileCopy, source_step)));
  code_.mov(destination, argument(offsetof(TileCopy, destination)));
  code_.mov(destination_step, argument(offsetof(TileCopy, destination_row_step)));
  code_.mov(columns, argument(offsetof(TileCopy, columns)));
  code_.lea(source_step_3, code_.ptr[source_step + source_step * 2]);
  code_.lea(destination_step_3, code_.ptr[destination_step + destination_step * 2]);
  code_.imul(block_step, source_step, n_);
}

void TransposeEmitter::emit_exit() {
  const Section exit = code_.section(CodeSection::exit);
  code_.vzeroupper();
  code_.pop_all(saved_registers);
  code_.emit_return();
}

/// Copies the whole tile in blocks, `blocks` adjacent ones at a time.
void TransposeEmitter::emit_blocks(int blocks, Xbyak::Label& done) {
  Xbyak::Label next;
  code_.sub(columns, blocks * n_);
  code_.L(next);
  emit_row_of_blocks(blocks);
  emit_advance(columns, blocks * n_, done);
  code_.lea(destination, code_.ptr[destination + count * bytes_]);
  code_.imul(count, source_step);
  code_.add(source, count);
  code_.jmp(next, Xbyak::CodeGenerator::T_NEAR);
}

/// Copies blocks along the source's rows.
void TransposeEmitter::emit_row_of_blocks(int blocks) {
  code_.mov(block_source, source);
  code_.mov(block_destination, destination);
  code_.mov(rows_left, argument(offsetof(TileCopy, rows)));
  code_.sub(rows_left, n_);
  code_.align_to(32);
  emit_loop_until_exit(code_, [&](Xbyak::Label& exit) {
    emit_load_block(blocks);
    emit_interleave_rounds(blocks);
    emit_store_block(blocks);
    emit_advance(rows_left, n_, exit);
    code_.lea(block_source, code_.ptr[block_source + count * bytes_]);
    code_.imul(count, destination_step);
    code_.add(block_destination, count);
  });
}

/// count = min(most, left), which is subtracted from `left`; jumps to `done` if that is 0.
void TransposeEmitter::emit_advance(const Reg64& left, int max, Xbyak::Label& done) {
  code_.mov(count.cvt32(), max);
  code_.cmp(left, count);
  code_.cmovl(count, left);
  code_.sub(left, count);
  code_.test(count, count);
  code_.jz(done, Xbyak::CodeGenerator::T_NEAR);
}

void TransposeEmitter::emit_load_block(int blocks) {
  const Section loads = code_.section(CodeSection::load_block);
  code_.mov(cursor, block_source);
  if (blocks == 2) code_.lea(far_cursor, code_.ptr[block_source + block_step]);
  RowAddresses near_rows(code_, cursor, source_step, source_step_3);
  RowAddresses far_rows(code_, far_cursor, source_step, source_step_3);
  for (int number : vectors_) {
    const int loaded = number == in_memory ? free_ : number;
    code_.vmovdqu(Xmm(loaded), near_rows.emit_next());
    if (blocks == 2) code_.vinserti128(Ymm(loaded), Ymm(loaded), far_rows.emit_next(), 1);
    if (number == in_memory) code_.vmovdqu(memory_, vector(loaded, blocks));
  }
}

void TransposeEmitter::emit_interleave_rounds(int blocks) {
  const Section rounds = code_.section(CodeSection::interleave);
  for (int round = n_; round > 1; round /= 2) {
    std::vector<int> interleaved;
    for (int i = 0; i < n_ / 2; ++i) {
      const auto [low, high] = emit_interleave(number_of(i), number_of(i + n_ / 2), blocks);
      interleaved.push_back(low);
      interleaved.push_back(high);
    }
    vectors_ = std::move(interleaved);
  }
}

/// Interleaves the elements of the low halves of two vectors, and of the high halves.
std::pair<int, int> TransposeEmitter::emit_interleave(int a, int b, int blocks) {
  if (b == in_memory) {
    emit_unpack_high(vector(free_, blocks), vector(a, blocks), memory_);
    emit_unpack_low(vector(a, blocks), vector(a, blocks), memory_);
    code_.vmovdqu(memory_, vector(free_, blocks));
    return {a, in_memory};
  }
  const int low = std::exchange(free_, a);
  emit_unpack_low(vector(low, blocks), vector(a, blocks), vector(b, blocks));
  emit_unpack_high(vector(b, blocks), vector(a, blocks), vector(b, blocks));
  return {low, b};
}

void TransposeEmitter::emit_unpack_low(const Xmm& to, const Xmm& a, const Operand& b) {
  switch (bytes_) {
    case 1: return code_.vpunpcklbw(to, a, b);
    case 2: return code_.vpunpcklwd(to, a, b);
    case 4: return code_.vpunpckldq(to, a, b);
    default: return code_.vpunpcklqdq(to, a, b);
  }
}

void TransposeEmitter::emit_unpack_high(const Xmm& to, const Xmm& a, const Operand& b) {
  switch (bytes_) {
    case 1: return code_.vpunpckhbw(to, a, b);
    case 2: return code_.vpunpckhwd(to, a, b);
    case 4: return code_.vpunpckhdq(to, a, b);
    default: return code_.vpunpckhqdq(to, a, b);
  }
}

void TransposeEmitter::emit_store_block(int blocks) {
  const Section stores = code_.section(CodeSection::stores);
  code_.mov(cursor, block_destination);
  RowAddresses addresses(code_, cursor, destination_step, destination_step_3);
  for (int number : vectors_) {
    const int stored = number == in_memory ? free_ : number;
    if (number == in_memory) code_.vmovdqu(vector(stored, blocks), memory_);
    code_.vmovdqu(addresses.emit_next(), vector(stored, blocks));
  }
}

}  // namespace

void emit_transpose(Assembler& code, int element_bytes) {
  TransposeEmitter(code, element_bytes).emit();
}

}  // namespace castor::jit
