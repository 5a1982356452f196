// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/strided_copy_emitter.hpp"

#include <array>
#include <cstddef>

#include "jit/emit/control_flow.hpp"
#include "jit/emit/tile_copy.hpp"

namespace castor::jit {

namespace {

using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::Xmm;
using Xbyak::Ymm;

const Reg64 arguments(Operand::RDI);
const Reg64 element(Operand::RAX);
const Reg64 source(Operand::RSI);
const Reg64 destination(Operand::RDX);
const Reg64 left(Operand::RCX);  ///< elements of the row
const Reg64 source_step(Operand::R8);
const Reg64 destination_step(Operand::R9);
const Reg64 source_step_3(Operand::R10);
const Reg64 destination_step_3(Operand::R11);
const Reg64 row_source(Operand::RBX);
const Reg64 row_destination(Operand::R13);
const Reg64 rows_left(Operand::R12);

const std::array saved_registers = {row_source, row_destination, rows_left};

/// Where every second to every fourth element is wanted, whole vectors are loaded and shuffled.
constexpr int max_shuffled_distance = 4;
constexpr int vector_bytes = 16;

class StridedCopyEmitter {
 public:
  StridedCopyEmitter(Assembler& code, int element_bytes) : code_(code), bytes_(element_bytes) {}

  void emit() {
    emit_entry();
    const Section rows = code_.section(CodeSection::row_loop);
    emit_loop_while(code_, Condition::not_equal, [&] {
      emit_row();
      code_.add(row_source, argument(offsetof(TileCopy, source_row_step)));
      code_.add(row_destination, argument(offsetof(TileCopy, destination_row_step)));
      code_.dec(rows_left);
    });
    emit_exit();
  }

 private:
  void emit_entry();
  void emit_exit();
  void emit_row();
  void emit_loop_of_elements(int count);
  void emit_elements(int count);
  void emit_element(const Xbyak::Address& to, const Xbyak::Address& from);
  void emit_shuffled();
  void emit_loop_of_vectors(int distance);
  void emit_two_vectors(int distance);
  Xbyak::Address shuffle(int distance, int part);

  /// Eight bytes have no room for a shuffle that saves anything.
  bool has_shuffles() const { return bytes_ <= 4; }
  Xbyak::Address argument(size_t offset) { return code_.qword[arguments + offset]; }

  Assembler& code_;
  const int bytes_;
};

void StridedCopyEmitter::emit_entry() {
  const Section entry = code_.section(CodeSection::entry);
  code_.push_all(saved_registers);
  code_.mov(row_source, argument(offsetof(TileCopy, source)));
  code_.mov(row_destination, argument(offsetof(TileCopy, destination)));
  code_.mov(source_step, argument(offsetof(TileCopy, source_step)));
  code_.mov(destination_step, argument(offsetof(TileCopy, destination_step)));
  code_.mov(rows_left, argument(offsetof(TileCopy, rows)));
  code_.lea(source_step_3, code_.ptr[source_step + source_step * 2]);
  code_.lea(destination_step_3, code_.ptr[destination_step + destination_step * 2]);
}

void StridedCopyEmitter::emit_exit() {
  const Section exit = code_.section(CodeSection::exit);
  if (has_shuffles()) code_.vzeroupper();
  code_.pop_all(saved_registers);
  code_.emit_return();
}

void StridedCopyEmitter::emit_row() {
  code_.mov(source, row_source);
  code_.mov(destination, row_destination);
  code_.mov(left, argument(offsetof(TileCopy, columns)));
  if (has_shuffles()) emit_shuffled();
  emit_loop_of_elements(4);
  code_.test(left, left);
  emit_unless(code_, Condition::equal, Jump::shortest, [&] { emit_loop_of_elements(1); });
}

/// Copies `count` elements at a time, while that many are left.
void StridedCopyEmitter::emit_loop_of_elements(int count) {
  const Section loop = code_.section(CodeSection::copy_loop);
  code_.sub(left, count);
  emit_unless(code_, Condition::less, Jump::shortest, [&] {
    emit_loop_while(code_, Condition::greater_equal, Jump::shortest, [&] {
      emit_elements(count);
      code_.lea(source, code_.ptr[source + source_step * count]);
      code_.lea(destination, code_.ptr[destination + destination_step * count]);
      code_.sub(left, count);
    });
  });
  code_.add(left, count);
}

void StridedCopyEmitter::emit_elements(int count) {
  const Section elements = code_.section(CodeSection::elements);
  const Xbyak::Address from[] = {code_.ptr[source], code_.ptr[source + source_step],
                                 code_.ptr[source + source_step * 2],
                                 code_.ptr[source + source_step_3]};
  const Xbyak::Address to[] = {code_.ptr[destination], code_.ptr[destination + destination_step],
                               code_.ptr[destination + destination_step * 2],
                               code_.ptr[destination + destination_step_3]};
  for (int i = 0; i < count; ++i) emit_element(to[i], from[i]);
}

void StridedCopyEmitter::emit_element(const Xbyak::Address& to, const Xbyak::Address& from) {
  switch (bytes_) {
    case 1:
      code_.movzx(element.cvt32(), code_.byte[from.getRegExp()]);
      return code_.mov(to, element.cvt8());
    case 2:
      code_.movzx(element.cvt32(), code_.word[from.getRegExp()]);
      return code_.mov(to, element.cvt16());
    case 4: code_.mov(element.cvt32(), from); return code_.mov(to, element.cvt32());
    default: code_.mov(element, from); return code_.mov(to, element);
  }
}

/// Copies the whole vectors of elements, where the destination's are consecutive.
void StridedCopyEmitter::emit_shuffled() {
  const Section choice = code_.section(CodeSection::choice);
  Xbyak::Label done;
  code_.cmp(destination_step, bytes_);
  code_.jne(done, Xbyak::CodeGenerator::T_NEAR);
  for (int distance = 2; distance <= max_shuffled_distance; ++distance) {
    code_.cmp(source_step, distance * bytes_);
    emit_unless(code_, Condition::not_equal, [&] {
      emit_loop_of_vectors(distance);
      code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
    });
  }
  code_.L(done);
}

/// Copies two vectors of 16 bytes at a time. Each is made of `distance` vectors of the source,
/// which end after their last wanted element: another one must follow it.
void StridedCopyEmitter::emit_loop_of_vectors(int distance) {
  const Section loop = code_.section(CodeSection::copy_loop);
  const int elements = 2 * vector_bytes / bytes_;
  code_.cmp(left, elements);
  emit_unless(code_, Condition::less_equal, [&] {
    emit_loop_while(code_, Condition::greater, [&] {
      emit_two_vectors(distance);
      code_.add(source, 2 * distance * vector_bytes);
      code_.add(destination, 2 * vector_bytes);
      code_.sub(left, elements);
      code_.cmp(left, elements);
    });
  });
}

void StridedCopyEmitter::emit_two_vectors(int distance) {
  const Section shuffles = code_.section(CodeSection::interleave);
  for (int part = 0; part < distance; ++part) {
    const Ymm vector(part);
    const int offset = part * vector_bytes;
    code_.vmovdqu(Xmm(part), code_.ptr[source + offset]);
    code_.vinserti128(vector, vector, code_.ptr[source + offset + distance * vector_bytes], 1);
    code_.vpshufb(vector, vector, shuffle(distance, part));
    if (part > 0) code_.vpor(Ymm(0), Ymm(0), vector);
  }
  code_.vmovdqu(code_.ptr[destination], Ymm(0));
}

/// Takes the elements that vector `part` of `distance` holds to their positions; 0 elsewhere.
Xbyak::Address StridedCopyEmitter::shuffle(int distance, int part) {
  constexpr uint8_t zero = 0x80;
  std::array<uint8_t, 2 * vector_bytes> order;
  for (int at = 0; at < 2 * vector_bytes; ++at) {
    const int within = at % vector_bytes;
    const int from = within / bytes_ * bytes_ * distance + within % bytes_ - part * vector_bytes;
    const bool here = from >= 0 && from < vector_bytes;
    order[static_cast<size_t>(at)] = here ? static_cast<uint8_t>(from) : zero;
  }
  return code_.constant(order);
}

}  // namespace

void emit_strided_copy(Assembler& code, int element_bytes) {
  StridedCopyEmitter(code, element_bytes).emit();
}

}  // namespace castor::jit
