// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/pack/pack_input.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
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
const Reg64 second(Operand::RSI);  ///< nchw4c: bytes to the other channels
const Reg64 third(Operand::RDX);
const Reg64 fourth(Operand::RCX);
const Reg64 filter_rows(Operand::RSI);  ///< im2col
const Reg64 plane_step(Operand::RDX);
const Reg64 filter_row(Operand::RCX);
const Reg64 k_group_source(Operand::R8);
const Reg64 plane(Operand::R9);
const Reg64 k_groups(Operand::R10);  ///< left
const Reg64 in_plane(Operand::R10);  ///< im2col: where a k group is stored
const Reg64 row_source(Operand::R11);
const Reg64 row(Operand::RBX);
const Reg64 rows(Operand::R15);     ///< left
const Reg64 vector(Operand::R12);   ///< of the table
const Reg64 vectors(Operand::R13);  ///< left
const Reg64 source(Operand::RAX);
const Reg64 destination(Operand::R14);
}  // namespace reg

const std::array saved_registers = {reg::row, reg::rows, reg::vector, reg::vectors,
                                    reg::destination};

const Zmm flips(31);
const Zmm padding(30);
const Zmm order(29);    ///< of bytes, or of i32
const Zmm in_lane(28);  ///< order of bytes within 16, after that of i32
const Zmm k_groups(0);
const Zmm channel(1);
const Zmm k_group(28);  ///< im2col; its rows of the filter are in vectors 0 to 27
static_assert(PackInput::max_filter_rows <= 28);
const Xbyak::Opmask present(1);
const Xbyak::Opmask stored(2);

constexpr int lanes = 16;
constexpr int vector_bytes = 64;
constexpr int elements = 4;  ///< of a k group

Xbyak::Address argument(Assembler& code, size_t offset) {
  return code.qword[reg::arguments + offset];
}
Xbyak::Address of_vector(Assembler& code, size_t offset) { return code.ptr[reg::vector + offset]; }

/// Loads the bytes of a row that are input; the others are padding.
template <class Vector>
void emit_load(Assembler& code, const Vector& to, const Xbyak::RegExp& from) {
  const Section load = code.section(CodeSection::load_pixels);
  code.vpblendmb(to | present, Vector(padding.getIdx()), code.ptr[from]);
}

/// Sixteen pixels of four channels: nchw4c.
class ChannelGather {
 public:
  ChannelGather(Assembler& code, int column_stride, bool permutes_bytes)
      : code_(code), column_stride_(column_stride), permutes_bytes_(permutes_bytes) {}

  /// The bytes of one channel after the other become k groups; without VBMI first four pixels of
  /// each channel become a 128-bit lane.
  void emit_entry() {
    if (permutes_bytes_) {
      const auto bytes =
          vector_constant<uint8_t>(512, [](int i) { return i % elements * lanes + i / elements; });
      return code_.vmovdqu32(order, code_.constant(bytes));
    }
    const auto of_i32 = vector_constant<uint32_t>(512, [](int i) { return i % 4 * 4 + i / 4; });
    const auto of_bytes =
        vector_constant<uint8_t>(512, [](int i) { return i % 4 * 4 + i % 16 / 4; });
    code_.vmovdqu32(order, code_.constant(of_i32));
    code_.vmovdqu32(in_lane, code_.constant(of_bytes));
  }

  void emit() {
    const Section interleave = code_.section(CodeSection::interleave);
    const Xbyak::Xmm next(channel.getIdx());
    const std::array others = {reg::second, reg::third, reg::fourth};
    emit_channel(Xbyak::Xmm(k_groups.getIdx()), reg::source);
    for (size_t i = 0; i < others.size(); ++i) {
      emit_channel(next, reg::source + others[i]);
      code_.vinserti32x4(k_groups, k_groups, next, static_cast<uint8_t>(i + 1));
    }
    if (permutes_bytes_) return code_.vpermb(k_groups, order, k_groups);
    code_.vpermd(k_groups, order, k_groups);
    code_.vpshufb(k_groups, k_groups, in_lane);
  }

 private:
  /// Sixteen pixels, which are every byte or every second one.
  void emit_channel(const Xbyak::Xmm& to, const Xbyak::RegExp& from) {
    const Section load = code_.section(CodeSection::load_pixels);
    if (column_stride_ == 1) return emit_load(code_, to, from);
    const Ymm both(to.getIdx());
    emit_load(code_, both, from);
    code_.vpmovwb(to, both);
  }

  Assembler& code_;
  const int column_stride_;
  const bool permutes_bytes_;
};

/// The receptive fields of sixteen output pixels: im2col. Needs vpermb.
class TapGather {
 public:
  TapGather(Assembler& code, const PackInput& spec) : code_(code), spec_(spec) {}

  void emit_entry() {
    for (int first = 1; first < elements; ++first) {
      const uint64_t of_a_k_group = 0xfu & (0xfu << first);
      code_.mov(reg::source, of_a_k_group * 0x1111111111111111u);
      code_.kmovq(from_element(first), reg::source);
    }
  }

  /// All k groups of the vector, each stored in its plane.
  void emit() {
    emit_loads();
    code_.mov(reg::in_plane, reg::destination);
    for (int tap = 0; tap < spec_.taps(); tap += elements) {
      emit_k_group(tap);
      const Section stores = code_.section(CodeSection::stores);
      code_.vpxord(k_group, k_group, flips);
      code_.vmovdqu32(code_.ptr[reg::in_plane] | stored, k_group);
      code_.add(reg::in_plane, reg::plane_step);
    }
  }

 private:
  /// Opmask of the elements of every k group from `first` on.
  static Xbyak::Opmask from_element(int first) { return Xbyak::Opmask(2 + first); }

  /// For each row of the filter the bytes that the taps of sixteen pixels take.
  void emit_loads() {
    const Section loads = code_.section(CodeSection::load_pixels);
    for (int i = 0; i < spec_.filter_rows; ++i) {
      Xbyak::Label is_padding;
      code_.vmovdqa32(Zmm(i), padding);
      code_.mov(reg::filter_row, code_.ptr[reg::filter_rows + 8 * i]);
      code_.test(reg::filter_row, reg::filter_row);
      code_.jz(is_padding);
      emit_load(code_, Zmm(i), reg::filter_row + reg::source);
      code_.L(is_padding);
    }
  }

  /// The taps of a k group may be of several rows of the filter.
  void emit_k_group(int first_tap) {
    const Section fields = code_.section(CodeSection::receptive_fields);
    for (int i = 0; i < elements && first_tap + i < spec_.taps(); ++i) {
      const bool begins_row = (first_tap + i) % spec_.filter_columns == 0;
      if (i == 0 || begins_row) emit_elements(i, first_tap + i);
    }
  }

  /// The elements of every k group from `first` on, the first of which is that tap; those that are
  /// of another row of the filter are overwritten later.
  void emit_elements(int first, int tap) {
    code_.vmovdqu32(order, order_of_bytes(tap % spec_.filter_columns - first));
    code_.vpermb(first == 0 ? k_group : k_group | from_element(first), order,
                 Zmm(tap / spec_.filter_columns));
  }

  /// Four taps per pixel, the first of which is tap `column` of a row, which may be negative.
  Xbyak::Address order_of_bytes(int column) {
    const auto [known, is_new] = orders_.try_emplace(column);
    if (is_new) {
      known->second = code_.constant(vector_constant<uint8_t>(8 * vector_bytes, [&](int i) {
        const int tap = column + i % elements;
        return (i / elements * spec_.column_stride + tap * spec_.dilation) % vector_bytes;
      }));
    }
    return *known->second;
  }

  Assembler& code_;
  const PackInput spec_;
  std::map<int, std::optional<Xbyak::Address>> orders_;  ///< by `column`
};

/// Emits the loops. The methods are in the order of the code that they emit.
class PackInputEmitter {
 public:
  PackInputEmitter(const PackInput& spec, const Target& target, const CodeBuffer& buffer)
      : spec_(spec),
        code_(buffer, target.frame_pointers),
        channels_(code_, spec.column_stride, target.supports(Feature::avx512_vbmi)),
        taps_(code_, spec) {}

  MachineCode emit() {
    Xbyak::Label next;
    emit_entry();
    code_.L(next);
    emit_rows();
    if (!is_im2col()) {
      const Section groups = code_.section(CodeSection::group_loop);
      code_.add(reg::k_group_source, at(offsetof(PackInputArguments, source_k_group_step)));
      code_.add(reg::plane, at(offsetof(PackInputArguments, plane_step)));
      code_.dec(reg::k_groups);
      code_.jnz(next, Xbyak::CodeGenerator::T_NEAR);
    }
    emit_exit();
    return code_.finish();
  }

 private:
  void emit_entry() {
    const Section entry = code_.section(CodeSection::entry);
    code_.push_all(saved_registers);
    if (is_im2col()) {
      code_.mov(reg::filter_rows, at(offsetof(PackInputArguments, filter_rows)));
      code_.mov(reg::plane_step, at(offsetof(PackInputArguments, plane_step)));
    } else {
      const std::array channels = {reg::second, reg::third, reg::fourth};
      for (size_t i = 0; i < channels.size(); ++i) {
        code_.mov(channels[i], at(offsetof(PackInputArguments, channels) + 8 * i));
      }
    }
    code_.mov(reg::k_group_source, at(offsetof(PackInputArguments, source)));
    code_.add(reg::k_group_source, at(offsetof(PackInputArguments, first_column)));
    code_.mov(reg::plane, at(offsetof(PackInputArguments, planes)));
    if (!is_im2col()) code_.mov(reg::k_groups, at(offsetof(PackInputArguments, k_groups)));
    const Section constants = code_.section(CodeSection::constants);
    code_.vpbroadcastd(flips, code_.dword[reg::arguments + offsetof(PackInputArguments, flips)]);
    code_.vpbroadcastd(padding,
                       code_.dword[reg::arguments + offsetof(PackInputArguments, padding)]);
    switch (spec_.layout) {
      case PackedLayout::nchw4c: return channels_.emit_entry();
      case PackedLayout::im2col: return taps_.emit_entry();
      case PackedLayout::columns4: break;
    }
    code_.vmovdqu32(order, code_.constant(vector_constant<uint8_t>(512, [&](int i) {
      return i / elements * spec_.column_stride + i % elements;
    })));
  }

  void emit_rows() {
    const Section rows = code_.section(CodeSection::row_loop);
    Xbyak::Label next;
    code_.mov(reg::row_source, reg::k_group_source);
    code_.mov(reg::row, reg::plane);
    code_.mov(reg::rows, at(offsetof(PackInputArguments, rows)));
    code_.L(next);
    emit_vectors();
    code_.add(reg::row_source, at(offsetof(PackInputArguments, source_row_step)));
    code_.add(reg::row, at(offsetof(PackInputArguments, row_step)));
    code_.dec(reg::rows);
    code_.jnz(next, Xbyak::CodeGenerator::T_NEAR);
  }

  void emit_vectors() {
    const Section vectors = code_.section(CodeSection::vector_loop);
    Xbyak::Label next;
    code_.mov(reg::vector, at(offsetof(PackInputArguments, vectors)));
    code_.mov(reg::vectors, at(offsetof(PackInputArguments, vector_count)));
    code_.mov(reg::source, reg::row_source);
    code_.mov(reg::destination, reg::row);
    code_.align_to(32);
    code_.L(next);
    const uint32_t begin = code_.position();
    emit_vector();
    code_.add(reg::source, static_cast<uint32_t>(spec_.vector_step()));
    code_.add(reg::destination, vector_bytes);
    code_.add(reg::vector, sizeof(PackedVector));
    code_.dec(reg::vectors);
    code_.jnz(next);
    const int groups = is_im2col() ? (spec_.taps() + elements - 1) / elements : 1;
    const int64_t bytes = int64_t{groups} * vector_bytes;
    code_.note_loop({.begin = begin,
                     .elements = bytes,
                     .load_bytes = is_im2col() ? int64_t{spec_.filter_rows} * vector_bytes : bytes,
                     .store_bytes = bytes,
                     .name = "vectors"});
  }

  void emit_vector() {
    code_.kmovq(present, of_vector(code_, offsetof(PackedVector, bytes)));
    code_.kmovw(stored, of_vector(code_, offsetof(PackedVector, lanes)));
    switch (spec_.layout) {
      case PackedLayout::nchw4c: channels_.emit(); break;
      case PackedLayout::columns4:
        emit_load(code_, k_groups, reg::source);
        emit_columns();
        break;
      case PackedLayout::im2col: return taps_.emit();
    }
    const Section stores = code_.section(CodeSection::stores);
    code_.vpxord(k_groups, k_groups, flips);
    code_.vmovdqu32(code_.ptr[reg::destination] | stored, k_groups);
  }

  void emit_columns() {
    const Section interleave = code_.section(CodeSection::interleave);
    code_.vpermb(k_groups, order, k_groups);
  }

  void emit_exit() {
    const Section exit = code_.section(CodeSection::exit);
    code_.vzeroupper();
    code_.pop_all(saved_registers);
    code_.emit_return();
  }

  bool is_im2col() const { return spec_.layout == PackedLayout::im2col; }
  Xbyak::Address at(size_t offset) { return argument(code_, offset); }

  const PackInput spec_;
  Assembler code_;
  ChannelGather channels_;
  TapGather taps_;
};

/// Whether the taps of sixteen pixels take at most a vector of bytes of each row of the filter.
bool fits_im2col(const PackInput& spec) {
  const auto fit_a_vector = [](auto... numbers) { return ((numbers <= vector_bytes) && ...); };
  return spec.filter_rows <= PackInput::max_filter_rows &&
         fit_a_vector(spec.column_stride, spec.filter_columns, spec.dilation) &&
         fit_a_vector((lanes - 1) * spec.column_stride + (spec.filter_columns - 1) * spec.dilation +
                      1);
}

}  // namespace

bool fits(const PackInput& spec, const Target& target) {
  if (spec.layout == PackedLayout::nchw4c) {
    return target.supports(Feature::avx512_vnni) && spec.column_stride <= 2;
  }
  if (!target.supports(Feature::avx512_vbmi)) return false;
  return spec.layout == PackedLayout::columns4 ? spec.column_stride <= elements : fits_im2col(spec);
}

Result<MachineCode> emit_kernel(const PackInput& spec, const Target& target,
                                const EmitOptions& options) {
  return assemble(
      fmt::format("tier {}", name_of(target.tier)), options,
      [&](const CodeBuffer& buffer) { return PackInputEmitter(spec, target, buffer).emit(); });
}

}  // namespace castor::jit
