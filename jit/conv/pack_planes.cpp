// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/pack_planes.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "jit/emit/assembler.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::Ymm;
using Xbyak::Zmm;

/// Registers with one meaning throughout the code.
namespace reg {
const Reg64 arguments(Operand::RDI);
const Reg64 second(Operand::RSI);  ///< bytes to the other channels
const Reg64 third(Operand::RDX);
const Reg64 fourth(Operand::RCX);
const Reg64 part_source(Operand::R8);
const Reg64 part_planes(Operand::R9);
const Reg64 parts(Operand::R10);  ///< left
const Reg64 row_source(Operand::R11);
const Reg64 row_planes(Operand::RBX);
const Reg64 rows(Operand::RBP);     ///< left
const Reg64 vector(Operand::R12);   ///< of the table
const Reg64 vectors(Operand::R13);  ///< left; of plain rows pixels left
const Reg64 source(Operand::RAX);
const Reg64 destination(Operand::R14);
}  // namespace reg

const std::array saved_registers = {reg::row_planes, reg::rows, reg::vector, reg::vectors,
                                    reg::destination};

const Zmm flips(31);
const Zmm padding(30);
const Zmm order(29);    ///< of bytes, or of dwords
const Zmm in_lane(28);  ///< order of bytes within 16, behind that of dwords
const Zmm even(27);     ///< the low byte of words
const Zmm pixels(0);
const Zmm others(1);  ///< the third and the fourth channel
const Zmm padded(2);
const Xbyak::Opmask present(1);
const Xbyak::Opmask stored(2);

constexpr int lanes = 16;
constexpr int vector_bytes = 64;

/// Emits the code. The methods are in the order of the code that they emit.
class FillPlanesEmitter {
 public:
  FillPlanesEmitter(const PlaneForm& form, const Target& target, std::span<uint8_t> buffer)
      : form_(form), permutes_bytes_(target.supports(Feature::avx512_vbmi)), code_(buffer) {}

  MachineCode emit() {
    Xbyak::Label next_part;
    emit_entry();
    code_.L(next_part);
    if (form_.is_plain) {
      emit_pixels();
    } else {
      emit_rows();
    }
    code_.add(reg::part_source, argument(offsetof(PlaneFilling, source_part_step)));
    code_.add(reg::part_planes, argument(offsetof(PlaneFilling, part_step)));
    code_.dec(reg::parts);
    code_.jnz(next_part, Xbyak::CodeGenerator::T_NEAR);
    emit_exit();
    return code_.finish();
  }

 private:
  void emit_entry();
  std::vector<uint8_t> order_of_bytes() const;
  std::vector<uint8_t> order_of_columns() const;
  std::vector<uint8_t> order_of_dwords() const;
  void emit_pixels();
  void emit_rows();
  void emit_vectors();
  void load_padded();
  void load_columns();
  void load_pixels();
  void load_every_pixel();
  void load_every_second_pixel();
  void emit_exit();

  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }
  Xbyak::Address of_vector(size_t offset) { return code_.ptr[reg::vector + offset]; }

  const PlaneForm form_;
  const bool permutes_bytes_;
  Assembler code_;
};

void FillPlanesEmitter::emit_entry() {
  code_.push_all(saved_registers);
  const std::array channels = {reg::second, reg::third, reg::fourth};
  for (size_t i = 0; i < channels.size(); ++i) {
    code_.mov(channels[i], argument(offsetof(PlaneFilling, channels) + 8 * i));
  }
  code_.mov(reg::part_source, argument(offsetof(PlaneFilling, source)));
  code_.mov(reg::part_planes, argument(offsetof(PlaneFilling, planes)));
  code_.mov(reg::parts, argument(offsetof(PlaneFilling, parts)));
  code_.vpbroadcastd(flips, code_.dword[reg::arguments + offsetof(PlaneFilling, flips)]);
  code_.vpbroadcastd(padding, code_.dword[reg::arguments + offsetof(PlaneFilling, padding)]);
  if (permutes_bytes_) {
    code_.vmovdqu32(order,
                    code_.constant(form_.holds_columns ? order_of_columns() : order_of_bytes()));
    return;
  }
  code_.vmovdqu32(order, code_.constant(order_of_dwords()));
  code_.vmovdqu32(in_lane, code_.constant(vector_constant<uint8_t>(
                               512, [](int i) { return i % 4 * 4 + i % 16 / 4; })));
  code_.vmovdqu32(even, code_.constant(vector_constant<uint16_t>(512, [](int) { return 0xff; })));
}

/// Of the channels' bytes one after the other, the dwords of pixels.
std::vector<uint8_t> FillPlanesEmitter::order_of_bytes() const {
  return vector_constant<uint8_t>(512, [&](int i) {
    return i % 4 * lanes * form_.column_stride + i / 4 * form_.column_stride;
  });
}

/// Of a row's bytes, the columns of each dword.
std::vector<uint8_t> FillPlanesEmitter::order_of_columns() const {
  return vector_constant<uint8_t>(512, [&](int i) { return i / 4 * form_.column_stride + i % 4; });
}

/// Four pixels of each channel side by side. Every second pixel has been packed from the first two
/// channels and the others in turns, by eight bytes.
std::vector<uint8_t> FillPlanesEmitter::order_of_dwords() const {
  return vector_constant<uint32_t>(512, [&](int i) {
    const int channel = i % 4;
    const int dword = i / 4;
    if (form_.column_stride == 1) return channel * 4 + dword;
    return (channel % 2 * 2 + dword / 2) * 4 + channel / 2 * 2 + dword % 2;
  });
}

/// Pixels one after the other, the last ones under a mask.
void FillPlanesEmitter::emit_pixels() {
  Xbyak::Label next;
  Xbyak::Label last;
  code_.mov(reg::source, reg::part_source);
  code_.mov(reg::destination, reg::part_planes);
  code_.mov(reg::vectors, argument(offsetof(PlaneFilling, pixels)));
  code_.sub(reg::vectors, lanes);
  code_.jl(last, Xbyak::CodeGenerator::T_NEAR);
  code_.align_to(32);
  code_.L(next);
  load_pixels();
  code_.vmovdqu32(code_.ptr[reg::destination], pixels);
  code_.add(reg::source, lanes);
  code_.add(reg::destination, vector_bytes);
  code_.sub(reg::vectors, lanes);
  code_.jge(next, Xbyak::CodeGenerator::T_NEAR);
  code_.L(last);
  Xbyak::Label done;
  code_.add(reg::vectors, lanes);
  code_.jz(done, Xbyak::CodeGenerator::T_NEAR);
  load_pixels();
  code_.mov(reg::row_source.cvt32(), -1);
  code_.bzhi(reg::row_source.cvt32(), reg::row_source.cvt32(), reg::vectors.cvt32());
  code_.kmovw(stored, reg::row_source.cvt32());
  code_.vmovdqu32(code_.ptr[reg::destination] | stored, pixels);
  code_.L(done);
}

void FillPlanesEmitter::emit_rows() {
  Xbyak::Label next;
  code_.mov(reg::row_source, reg::part_source);
  code_.mov(reg::row_planes, reg::part_planes);
  code_.mov(reg::rows, argument(offsetof(PlaneFilling, rows)));
  code_.L(next);
  emit_vectors();
  code_.add(reg::row_source, argument(offsetof(PlaneFilling, source_row_step)));
  code_.add(reg::row_planes, argument(offsetof(PlaneFilling, row_step)));
  code_.dec(reg::rows);
  code_.jnz(next, Xbyak::CodeGenerator::T_NEAR);
}

void FillPlanesEmitter::emit_vectors() {
  Xbyak::Label next;
  code_.mov(reg::vector, argument(offsetof(PlaneFilling, vectors)));
  code_.mov(reg::vectors, argument(offsetof(PlaneFilling, vector_count)));
  code_.align_to(32);
  code_.L(next);
  code_.mov(reg::source, of_vector(offsetof(PlaneVector, source)));
  code_.add(reg::source, reg::row_source);
  code_.movsxd(reg::destination, code_.dword[reg::vector + offsetof(PlaneVector, destination)]);
  code_.kmovw(stored, of_vector(offsetof(PlaneVector, lanes) + 2));
  form_.holds_columns ? load_columns() : load_padded();
  code_.vmovdqu32(code_.ptr[reg::row_planes + reg::destination] | stored, padded);
  code_.add(reg::vector, sizeof(PlaneVector));
  code_.dec(reg::vectors);
  code_.jnz(next);
}

/// Sixteen dwords of channels, some of which are padding.
void FillPlanesEmitter::load_padded() {
  code_.kmovw(present, of_vector(offsetof(PlaneVector, lanes)));
  load_pixels();
  code_.vmovdqa32(padded, padding);
  code_.vpexpandd(padded | present, pixels);
}

/// Sixteen dwords of columns, some of whose bytes are padding, which is not read.
void FillPlanesEmitter::load_columns() {
  code_.kmovq(present, of_vector(offsetof(PlaneVector, bytes)));
  code_.vmovdqa32(padded, padding);
  code_.vmovdqu8(padded | present, code_.ptr[reg::source]);
  code_.vpermb(padded, order, padded);
  code_.vpxord(padded, padded, flips);
}

/// Sixteen pixels from the source on.
void FillPlanesEmitter::load_pixels() {
  if (form_.column_stride == 1) {
    load_every_pixel();
  } else {
    load_every_second_pixel();
  }
  code_.vpxord(pixels, pixels, flips);
}

void FillPlanesEmitter::load_every_pixel() {
  code_.vmovdqu(Xbyak::Xmm(pixels.getIdx()), code_.ptr[reg::source]);
  code_.vinserti32x4(pixels, pixels, code_.ptr[reg::source + reg::second], 1);
  code_.vinserti32x4(pixels, pixels, code_.ptr[reg::source + reg::third], 2);
  code_.vinserti32x4(pixels, pixels, code_.ptr[reg::source + reg::fourth], 3);
  if (permutes_bytes_) return code_.vpermb(pixels, order, pixels);
  code_.vpermd(pixels, order, pixels);
  code_.vpshufb(pixels, pixels, in_lane);
}

void FillPlanesEmitter::load_every_second_pixel() {
  code_.vmovdqu(Ymm(pixels.getIdx()), code_.ptr[reg::source]);
  code_.vmovdqu(Ymm(others.getIdx()), code_.ptr[reg::source + reg::third]);
  code_.vinserti64x4(pixels, pixels, code_.ptr[reg::source + reg::second], 1);
  code_.vinserti64x4(others, others, code_.ptr[reg::source + reg::fourth], 1);
  if (permutes_bytes_) return code_.vpermt2b(pixels, order, others);
  code_.vpandd(pixels, pixels, even);
  code_.vpandd(others, others, even);
  code_.vpackuswb(pixels, pixels, others);
  code_.vpermd(pixels, order, pixels);
  code_.vpshufb(pixels, pixels, in_lane);
}

void FillPlanesEmitter::emit_exit() {
  code_.vzeroupper();
  code_.pop_all(saved_registers);
  code_.ret();
}

}  // namespace

bool can_fill(const PlaneForm& form, const Target& target) {
  if (form.holds_columns) {
    return form.column_stride <= 4 && !form.is_plain && target.supports(Feature::avx512_vbmi);
  }
  const bool has_step = form.column_stride == 1 || (form.column_stride == 2 && !form.is_plain);
  return has_step && target.supports(Feature::avx512_vnni);
}

Result<MachineCode> emit_kernel(const PlaneForm& form, const Target& target) {
  return assemble(fmt::format("tier {}", name_of(target.tier)), [&](std::span<uint8_t> buffer) {
    return FillPlanesEmitter(form, target, buffer).emit();
  });
}

}  // namespace castor::jit
