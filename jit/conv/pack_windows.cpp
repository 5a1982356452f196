// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/pack_windows.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>

#include "jit/emit/assembler.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::Zmm;

/// Registers with one meaning throughout the code.
namespace reg {
const Reg64 arguments(Operand::RDI);
const Reg64 sources(Operand::RSI);
const Reg64 source_row(Operand::RDX);  ///< bytes from the first output row's input
const Reg64 planes_row(Operand::RCX);
const Reg64 rows(Operand::R8);      ///< left
const Reg64 vector(Operand::R9);    ///< of the table
const Reg64 vectors(Operand::R10);  ///< left
const Reg64 column(Operand::R11);   ///< bytes from the source to the vector's first
const Reg64 source(Operand::RAX);
const Reg64 destination(Operand::RAX);
const Reg64 plane_step(Operand::RBX);
}  // namespace reg

const std::array saved_registers = {reg::plane_step};

const Zmm flips(31);
const Zmm padding(30);
const Zmm order(29);
const Zmm dword(28);
static_assert(WindowForm::max_rows <= 28);
constexpr int lanes = 16;
constexpr int vector_bytes = 64;
constexpr int taps_of_dword = 4;

const Xbyak::Opmask present(4);
const Xbyak::Opmask stored(5);
/// Opmask `first` names the bytes of every dword from that one on.
Xbyak::Opmask from_byte(int first) { return Xbyak::Opmask(first); }

/// Emits the code. The methods are in the order of the code that they emit.
class FillWindowsEmitter {
 public:
  FillWindowsEmitter(const WindowForm& form, std::span<uint8_t> buffer)
      : form_(form), code_(buffer) {}

  MachineCode emit() {
    Xbyak::Label next_row;
    Xbyak::Label next_vector;
    emit_entry();
    code_.L(next_row);
    code_.mov(reg::vector, argument(offsetof(WindowFilling, vectors)));
    code_.mov(reg::vectors, argument(offsetof(WindowFilling, vector_count)));
    code_.align_to(32);
    code_.L(next_vector);
    emit_loads();
    emit_dwords();
    code_.add(reg::vector, sizeof(PlaneVector));
    code_.dec(reg::vectors);
    code_.jnz(next_vector, Xbyak::CodeGenerator::T_NEAR);
    code_.add(reg::source_row, argument(offsetof(WindowFilling, source_step)));
    code_.add(reg::planes_row, argument(offsetof(WindowFilling, row_step)));
    code_.dec(reg::rows);
    code_.jnz(next_row, Xbyak::CodeGenerator::T_NEAR);
    emit_exit();
    return code_.finish();
  }

 private:
  void emit_entry();
  void emit_loads();
  void emit_dwords();
  void emit_dword(int first_tap);
  void emit_bytes(int first, int tap);
  Xbyak::Address order_of_bytes(int column);
  void emit_exit();

  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }
  Xbyak::Address of_vector(size_t offset) { return code_.ptr[reg::vector + offset]; }

  const WindowForm form_;
  Assembler code_;
  std::map<int, std::optional<Xbyak::Address>> orders_;  ///< by the first byte's tap of a row
};

void FillWindowsEmitter::emit_entry() {
  code_.push_all(saved_registers);
  code_.mov(reg::sources, argument(offsetof(WindowFilling, sources)));
  code_.xor_(reg::source_row.cvt32(), reg::source_row.cvt32());
  code_.mov(reg::planes_row, argument(offsetof(WindowFilling, planes)));
  code_.mov(reg::plane_step, argument(offsetof(WindowFilling, plane_step)));
  code_.mov(reg::rows, argument(offsetof(WindowFilling, rows)));
  code_.vpbroadcastd(flips, code_.dword[reg::arguments + offsetof(WindowFilling, flips)]);
  code_.vpbroadcastd(padding, code_.dword[reg::arguments + offsetof(WindowFilling, padding)]);
  for (int first = 1; first < taps_of_dword; ++first) {
    const uint64_t of_a_dword = 0xfu & (0xfu << first);
    code_.mov(reg::source, of_a_dword * 0x1111111111111111u);
    code_.kmovq(from_byte(first), reg::source);
  }
}

/// Of each row of the filter the bytes that the taps of sixteen pixels take.
void FillWindowsEmitter::emit_loads() {
  code_.kmovq(present, of_vector(offsetof(PlaneVector, bytes)));
  code_.kmovw(stored, of_vector(offsetof(PlaneVector, lanes) + 2));
  code_.mov(reg::column, of_vector(offsetof(PlaneVector, source)));
  code_.add(reg::column, reg::source_row);
  for (int row = 0; row < form_.rows; ++row) {
    Xbyak::Label is_padding;
    code_.vmovdqa32(Zmm(row), padding);
    code_.mov(reg::source, code_.ptr[reg::sources + 8 * row]);
    code_.test(reg::source, reg::source);
    code_.jz(is_padding);
    code_.vmovdqu8(Zmm(row) | present, code_.ptr[reg::source + reg::column]);
    code_.L(is_padding);
  }
}

void FillWindowsEmitter::emit_dwords() {
  code_.movsxd(reg::destination, code_.dword[reg::vector + offsetof(PlaneVector, destination)]);
  code_.add(reg::destination, reg::planes_row);
  for (int tap = 0; tap < form_.taps(); tap += taps_of_dword) {
    emit_dword(tap);
    code_.vpxord(dword, dword, flips);
    code_.vmovdqu32(code_.ptr[reg::destination] | stored, dword);
    code_.add(reg::destination, reg::plane_step);
  }
}

/// Its taps may be of several rows.
void FillWindowsEmitter::emit_dword(int first_tap) {
  for (int byte = 0; byte < taps_of_dword && first_tap + byte < form_.taps(); ++byte) {
    const bool begins_row = (first_tap + byte) % form_.columns == 0;
    if (byte == 0 || begins_row) emit_bytes(byte, first_tap + byte);
  }
}

/// The bytes of every dword from `first` on, the first being that tap's; what is not of its row is
/// overwritten later.
void FillWindowsEmitter::emit_bytes(int first, int tap) {
  const Zmm row(tap / form_.columns);
  code_.vmovdqu32(order, order_of_bytes(tap % form_.columns - first));
  code_.vpermb(first == 0 ? dword : dword | from_byte(first), order, row);
}

/// Four taps of each pixel, the first of which is that one of a row, or would be.
Xbyak::Address FillWindowsEmitter::order_of_bytes(int column) {
  const auto [known, is_new] = orders_.try_emplace(column);
  if (is_new) {
    known->second = code_.constant(vector_constant<uint8_t>(8 * vector_bytes, [&](int i) {
      const int tap = column + i % taps_of_dword;
      return (i / taps_of_dword * form_.column_stride + tap * form_.dilation) % vector_bytes;
    }));
  }
  return *known->second;
}

void FillWindowsEmitter::emit_exit() {
  code_.vzeroupper();
  code_.pop_all(saved_registers);
  code_.ret();
}

}  // namespace

bool can_fill(const WindowForm& form, const Target& target) {
  return target.supports(Feature::avx512_vbmi) && form.rows <= WindowForm::max_rows &&
         form.column_stride <= vector_bytes && form.columns <= vector_bytes &&
         form.dilation <= vector_bytes && form.span(lanes) <= vector_bytes;
}

Result<MachineCode> emit_kernel(const WindowForm& form, const Target& target) {
  return assemble(fmt::format("tier {}", name_of(target.tier)), [&](std::span<uint8_t> buffer) {
    return FillWindowsEmitter(form, buffer).emit();
  });
}

}  // namespace castor::jit
