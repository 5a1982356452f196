// SPDX-License-Identifier: Apache-2.0
#include "jit/requantize/byte_table_kernel.hpp"

#include "jit/emit/assembler.hpp"
#include "jit/emit/control_flow.hpp"

namespace castor::jit {

namespace {

using Xbyak::Opmask;
using Xbyak::Reg64;
using Xbyak::Zmm;

constexpr int vector_bytes = 64;
constexpr int unrolled = 4;

/// Registers of the kernel; the quarters of the table are zmm0 to zmm3.
class ByteTableEmitter {
 public:
  ByteTableEmitter(bool frame_pointers, const CodeBuffer& buffer) : code_(buffer, frame_pointers) {}

  MachineCode emit() {
    emit_load_arguments();
    emit_main_loop();
    emit_remainder();
    emit_exit();
    return code_.finish();
  }

 private:
  void emit_load_arguments() {
    const Section entry = code_.section(CodeSection::entry);
    const Reg64 arguments = code_.rdi;
    emit_load_table(arguments);
    code_.mov(source_, code_.qword[arguments + offsetof(ByteTableCall, source)]);
    code_.mov(destination_, code_.qword[arguments + offsetof(ByteTableCall, destination)]);
    code_.mov(left_, code_.qword[arguments + offsetof(ByteTableCall, count)]);
  }

  void emit_exit() {
    const Section exit = code_.section(CodeSection::exit);
    code_.vzeroupper();
    code_.emit_return();
  }

  void emit_load_table(const Reg64& arguments) {
    const Section table = code_.section(CodeSection::table_registers);
    code_.mov(table_, code_.qword[arguments + offsetof(ByteTableCall, table)]);
    for (int quarter = 0; quarter < 4; ++quarter) {
      code_.vmovdqu64(Zmm(quarter), code_.zword[table_ + vector_bytes * quarter]);
    }
  }

  /// Two steps of 128 entries: a byte that one leaves alone is the other's index.
  void emit_look_up(const Zmm& bytes, const Opmask& upper, const Opmask& lower) {
    const Section look_up = code_.section(CodeSection::look_up);
    code_.vpmovb2m(upper, bytes);
    code_.knotq(lower, upper);
    code_.vpermi2b(bytes | lower, Zmm(0), Zmm(1));
    code_.vpermi2b(bytes | upper, Zmm(2), Zmm(3));
  }

  void emit_main_loop() {
    const Section loop = code_.section(CodeSection::main_loop);
    code_.sub(left_, unrolled * vector_bytes);
    emit_unless(code_, Condition::less, [&] {
      const uint32_t begin = code_.position();
      emit_loop_while(code_, Condition::greater_equal, [&] { emit_iteration(); });
      constexpr int bytes = unrolled * vector_bytes;
      code_.note_loop({.begin = begin,
                       .elements = bytes,
                       .load_bytes = bytes,
                       .store_bytes = bytes,
                       .name = "main loop"});
    });
    code_.add(left_, unrolled * vector_bytes);
  }

  void emit_iteration() {
    for (int i = 0; i < unrolled; ++i) {
      const Section loads = code_.section(CodeSection::load_block);
      code_.vmovdqu64(Zmm(4 + i), code_.zword[source_ + vector_bytes * i]);
    }
    for (int i = 0; i < unrolled; ++i) {
      emit_look_up(Zmm(4 + i), Opmask(1 + i % 2), Opmask(3 + i % 2));
      const Section stores = code_.section(CodeSection::stores);
      code_.vmovdqu64(code_.zword[destination_ + vector_bytes * i], Zmm(4 + i));
    }
    const Section next = code_.section(CodeSection::next_iteration);
    code_.add(source_, unrolled * vector_bytes);
    code_.add(destination_, unrolled * vector_bytes);
    code_.sub(left_, unrolled * vector_bytes);
  }

  /// Does a vector at a time, the last one under a mask of the bytes that are left.
  void emit_remainder() {
    const Section tail = code_.section(CodeSection::tail);
    const Opmask exists(5);
    code_.mov(all_, -1);
    emit_loop_until_exit(code_, [&](Xbyak::Label& exit) {
      code_.test(left_, left_);
      emit_jump_if(code_, Condition::less_equal, exit);
      code_.bzhi(mask_, all_, left_);  // fewer than 256 bytes are left: all ones from 64 up
      code_.kmovq(exists, mask_);
      emit_last_bytes(exists);
      code_.add(source_, vector_bytes);
      code_.add(destination_, vector_bytes);
      code_.sub(left_, vector_bytes);
    });
  }

  void emit_last_bytes(const Opmask& exists) {
    {
      const Section load = code_.section(CodeSection::load_block);
      code_.vmovdqu8(Zmm(4) | exists | Xbyak::util::T_z, code_.zword[source_]);
    }
    emit_look_up(Zmm(4), Opmask(1), Opmask(3));
    const Section stores = code_.section(CodeSection::stores);
    code_.vmovdqu8(code_.zword[destination_] | exists, Zmm(4));
  }

  Assembler code_;
  const Reg64 source_{Xbyak::Operand::RSI};
  const Reg64 destination_{Xbyak::Operand::RDX};
  const Reg64 left_{Xbyak::Operand::RCX};
  const Reg64 table_{Xbyak::Operand::RAX};
  const Reg64 mask_{Xbyak::Operand::RAX};
  const Reg64 all_{Xbyak::Operand::R8};
};

}  // namespace

bool has_byte_tables(const Target& target) { return target.supports(Feature::avx512_vbmi); }

Result<MachineCode> emit_kernel(const ByteTableSpec&, const Target& target,
                                const EmitOptions& options) {
  return assemble("a look-up of bytes", options, [&](const CodeBuffer& buffer) {
    return ByteTableEmitter(target.frame_pointers, buffer).emit();
  });
}

}  // namespace castor::jit
