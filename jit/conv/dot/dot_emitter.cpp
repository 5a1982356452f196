// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/dot/dot_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "jit/conv/emit_dot_product.hpp"

namespace castor::jit {

namespace {

using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Ymm;

constexpr int channels = DotTile::channels;

/// Registers with one meaning throughout the code.
namespace reg {
const Reg64 arguments(Operand::RDI);
const Reg64 steps(Operand::RSI);  ///< left
const Reg64 channel_step(Operand::RDX);
const Reg64 weights(Operand::R8);        ///< the step's, of the first of four channels
const Reg64 last_weights(Operand::RAX);  ///< the last channel's
const Reg64 channel(Operand::R9);        ///< the first of four
const Reg64 pixels(Operand::R10);        ///< the step's
const Reg64 output(Operand::R11);        ///< the next pixel's, at the first of four channels
const Reg64 tiles(Operand::RBX);         ///< left
const Reg64 pixel_sums(Operand::R12);    ///< for the tile's pixels
const Reg64 output_step(Operand::R13);
const Reg64 scratch(Operand::RCX);
}  // namespace reg
const std::array saved_registers = {reg::tiles, reg::pixel_sums, reg::output_step};

/// Vector registers: accumulators, weights, a product or the ones that weights are multiplied by,
/// pixels. This is the first one of pixels.
int first_pixel(const DotTile& tile) {
  const bool has_other = tile.sums_weights || !multiplies_bytes(tile.engine);
  return channels * tile.rows() + (has_other ? 2 : 1);
}
/// Pixels of i16 pairs that have no register are multiplied from memory.
int needed_registers(const DotTile& tile) {
  return first_pixel(tile) + (multiplies_bytes(tile.engine) ? tile.pixels : 0);
}

/// Emits the code. The methods are in the order of the code that they emit.
class DotEmitter {
 public:
  DotEmitter(const DotTile& tile, const Target& target, const CodeBuffer& buffer)
      : tile_(tile), target_(target), code_(buffer, target.frame_pointers) {}

  MachineCode emit() {
    emit_entry();
    emit_channels();
    emit_exit();
    return code_.finish();
  }

 private:
  void emit_entry() {
    const Section entry = code_.section(CodeSection::entry);
    code_.push_all(saved_registers);
    code_.mov(reg::channel_step, argument(offsetof(DotArguments, channel_step)));
    code_.mov(reg::output_step, argument(offsetof(DotArguments, output_step)));
    if (!tile_.has_tail) emit_ones();
  }

  void emit_ones() {
    if (!tile_.sums_weights) return;
    const Section constants = code_.section(CodeSection::constants);
    code_.vpbroadcastd(other(), code_.constant_of(uint32_t{0x01010101}));
  }

  /// Four channels at a time by all pixels, so that their weights come from memory once.
  void emit_channels() {
    const Section loop = code_.section(CodeSection::channel_loop);
    Xbyak::Label next_channels;
    Xbyak::Label done;
    code_.xor_(reg::channel.cvt32(), reg::channel.cvt32());
    code_.L(next_channels);
    code_.mov(reg::pixels, argument(offsetof(DotArguments, pixels)));
    code_.mov(reg::output, argument(offsetof(DotArguments, output)));
    code_.lea(reg::output, code_.ptr[reg::output + reg::channel * 4]);
    if (tile_.has_zero_points) {
      code_.mov(reg::pixel_sums, argument(offsetof(DotArguments, pixel_sums)));
    }
    code_.mov(reg::tiles, argument(offsetof(DotArguments, tiles)));
    emit_tiles();
    code_.mov(reg::scratch, argument(offsetof(DotArguments, last_channel)));
    code_.cmp(reg::channel, reg::scratch);
    code_.jae(done);
    code_.add(reg::channel, channels);
    code_.cmp(reg::channel, reg::scratch);
    code_.cmova(reg::channel, reg::scratch);
    code_.jmp(next_channels, Xbyak::CodeGenerator::T_NEAR);
    code_.L(done);
  }

  void emit_tiles() {
    const Section loop = code_.section(CodeSection::tile_loop);
    Xbyak::Label next_tile;
    Xbyak::Label done;
    code_.L(next_tile);
    emit_first_values();
    emit_steps();
    emit_results();
    code_.dec(reg::tiles);
    code_.jz(done);
    {
      const Section address = code_.section(CodeSection::output_address);
      if (tile_.has_zero_points) code_.add(reg::pixel_sums, 4 * tile_.pixels);
      code_.cmp(reg::tiles, 1);
      code_.jne(next_tile, Xbyak::CodeGenerator::T_NEAR);
      code_.mov(reg::output, argument(offsetof(DotArguments, last_output)));
      code_.lea(reg::output, code_.ptr[reg::output + reg::channel * 4]);
    }
    code_.jmp(next_tile, Xbyak::CodeGenerator::T_NEAR);
    code_.L(done);
  }

  void emit_first_values() {
    const Section first = code_.section(CodeSection::first_values);
    for (int i = 0; i < channels * tile_.rows(); ++i) {
      const Xmm each = vector(i);
      target_.has_avx512() ? code_.vpxord(each, each, each) : code_.vpxor(each, each, each);
    }
    if (tile_.has_tail) emit_ones();
    code_.mov(reg::weights, reg::channel_step);
    code_.imul(reg::weights, reg::channel);
    code_.add(reg::weights, argument(offsetof(DotArguments, weights)));
    code_.lea(reg::last_weights, code_.ptr[reg::channel_step + reg::channel_step * 2]);
    code_.add(reg::last_weights, reg::weights);
    code_.mov(reg::steps, argument(offsetof(DotArguments, steps)));
  }

  // ---- steps

  void emit_steps() {
    const Section loop = code_.section(CodeSection::k_loop);
    Xbyak::Label next_step;
    code_.align_to(32);
    code_.L(next_step);
    const uint32_t begin = code_.position();
    emit_step();
    code_.add(reg::weights, step());
    code_.add(reg::last_weights, step());
    code_.dec(reg::steps);
    code_.jnz(next_step, Xbyak::CodeGenerator::T_NEAR);
    code_.note_loop({.begin = begin,
                     .elements = int64_t{channels} * tile_.pixels * step(),
                     .load_bytes = channels * step() + tile_.pixels * vector_bytes(),
                     .store_bytes = 0,
                     .name = "steps"});
    if (!tile_.has_tail) return;
    code_.mov(reg::scratch, argument(offsetof(DotArguments, tail)));
    code_.add(reg::weights, reg::scratch);
    code_.add(reg::last_weights, reg::scratch);
    if (tile_.sums_weights) {
      const Section constants = code_.section(CodeSection::constants);
      code_.mov(reg::scratch, argument(offsetof(DotArguments, tail_ones)));
      code_.vmovups(other(), code_.ptr[reg::scratch]);
    }
    emit_step();
  }

  /// Goes on to the next step's pixels, which follow.
  void emit_step() {
    {
      const Section load = code_.section(CodeSection::load_pixels);
      for (int p = 0; p < held_pixels(); ++p) code_.vmovups(pixel(p), pixel_at(p));
    }
    const std::array<RegExp, channels> rows = {
        RegExp(reg::weights), reg::weights + reg::channel_step,
        reg::weights + reg::channel_step * 2, RegExp(reg::last_weights)};
    for (int c = 0; c < channels; ++c) {
      emit_load(code_.ptr[rows[static_cast<size_t>(c)]]);
      const Section products = code_.section(CodeSection::products);
      if (tile_.sums_weights) emit_product(sum(tile_.pixels, c), other());
      for (int p = 0; p < tile_.pixels; ++p) emit_product(sum(p, c), p);
    }
    code_.add(reg::pixels, tile_.pixels * vector_bytes());
  }

  void emit_load(const Xbyak::Address& from) {
    const Section load = code_.section(CodeSection::load_weights);
    if (multiplies_bytes(tile_.engine)) {
      code_.vmovups(weights(), from);
    } else if (tile_.w_is_signed) {
      code_.vpmovsxbw(weights(), from);
    } else {
      code_.vpmovzxbw(weights(), from);
    }
  }

  void emit_product(const Xmm& to, int p) {
    if (p < held_pixels()) return emit_product(to, pixel(p));
    code_.vpmaddwd(other(), weights(), pixel_at(p));
    code_.vpaddd(to, to, other());
  }
  void emit_product(const Xmm& to, const Xmm& by) {
    emit_dot_product(code_, target_, tile_.engine, to, by, weights(), other());
  }

  // ---- results

  /// Four channels of each pixel, less what zero points make.
  void emit_results() {
    if (tile_.sums_weights) {
      emit_reduction(tile_.pixels);
      const Section compensation = code_.section(CodeSection::compensation);
      const Xmm zero_point(weights().getIdx());
      const RegExp from = reg::arguments + offsetof(DotArguments, input_zero_point);
      code_.vpbroadcastd(zero_point, code_.ptr[from]);
      code_.vpmulld(result(tile_.pixels), result(tile_.pixels), zero_point);
    }
    if (tile_.has_zero_points) {
      code_.mov(reg::scratch, argument(offsetof(DotArguments, weight_zero_points)));
    }
    for (int p = 0; p < tile_.pixels; ++p) {
      emit_reduction(p);
      emit_compensation(p);
      const Section stores = code_.section(CodeSection::stores);
      code_.vmovups(code_.ptr[reg::output], result(p));
      code_.add(reg::output, reg::output_step);
    }
  }

  /// Adds up the lanes of a row's accumulators: lane c of the first one gets those of channel c.
  void emit_reduction(int row) {
    const Section transposition = code_.section(CodeSection::transposition);
    const auto lanes = [&](int c) { return sum(row, c); };
    const Xmm work = weights();
    for (int c = 0; c < channels; c += 2) {
      code_.vpunpckldq(work, lanes(c), lanes(c + 1));
      code_.vpunpckhdq(lanes(c), lanes(c), lanes(c + 1));
      code_.vpaddd(lanes(c), lanes(c), work);
    }
    code_.vpunpcklqdq(work, lanes(0), lanes(2));
    code_.vpunpckhqdq(lanes(0), lanes(0), lanes(2));
    code_.vpaddd(lanes(0), lanes(0), work);
    const Ymm halves(lanes(0).getIdx());
    const Ymm upper(work.getIdx());
    if (target_.has_avx512()) {
      code_.vextracti64x4(upper, Xbyak::Zmm(halves.getIdx()), 1);
      code_.vpaddd(halves, halves, upper);
      code_.vextracti32x4(Xmm(upper.getIdx()), halves, 1);
    } else {
      code_.vextracti128(Xmm(upper.getIdx()), halves, 1);
    }
    code_.vpaddd(result(row), result(row), Xmm(upper.getIdx()));
  }

  void emit_compensation(int p) {
    const Section compensation = code_.section(CodeSection::compensation);
    if (tile_.sums_weights) code_.vpsubd(result(p), result(p), result(tile_.pixels));
    if (!tile_.has_zero_points) return;
    const Xmm of_pixel(sum(p, 1).getIdx());
    code_.vpbroadcastd(of_pixel, code_.ptr[reg::pixel_sums + 4 * p]);
    code_.vpmulld(of_pixel, of_pixel, code_.ptr[reg::scratch + reg::channel * 4]);
    code_.vpsubd(result(p), result(p), of_pixel);
  }

  void emit_exit() {
    const Section exit = code_.section(CodeSection::exit);
    code_.vzeroupper();
    code_.pop_all(saved_registers);
    code_.emit_return();
  }

  // ---- registers

  Xmm sum(int row, int channel) const { return vector(row * channels + channel); }
  Xmm result(int row) const { return Xmm(sum(row, 0).getIdx()); }
  Xmm weights() const { return vector(channels * tile_.rows()); }
  /// A product of i16 pairs, or the ones that bytes of weights are multiplied by.
  Xmm other() const { return vector(channels * tile_.rows() + 1); }
  Xmm pixel(int p) const { return vector(first_pixel(tile_) + p); }
  int held_pixels() const {
    return std::min(tile_.pixels, target_.vector_registers() - first_pixel(tile_));
  }
  Xbyak::Address pixel_at(int p) { return code_.ptr[reg::pixels + p * vector_bytes()]; }
  Xmm vector(int index) const { return vector_register(index, target_.vector_bits()); }
  int vector_bytes() const { return target_.vector_bits() / 8; }
  int step() const { return dot_step(tile_.engine, target_); }
  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }

  const DotTile& tile_;
  const Target& target_;
  Assembler code_;
};

}  // namespace

ProductEngine dot_engine(bool w_is_signed, const Target& target) {
  const ProductEngine engine = product_engine_of(target);
  return multiplies_bytes(engine) && !w_is_signed ? ProductEngine::i8_u8_dot : engine;
}

int dot_step(ProductEngine engine, const Target& target) {
  return target.vector_bits() / 8 / bytes_of_channel(engine);
}

bool fits(const DotTile& tile, const Target& target) {
  if (tile.pixels < 1 || tile.pixels > DotTile::max_pixels) return false;
  if (tile.engine != dot_engine(tile.engine != ProductEngine::i8_u8_dot, target)) return false;
  if (multiplies_bytes(tile.engine) ? tile.w_is_signed : tile.sums_weights) return false;
  return needed_registers(tile) <= target.vector_registers();
}

Result<MachineCode> emit_kernel(const DotTile& tile, const Target& target,
                                const EmitOptions& options) {
  return assemble(
      fmt::format("tier {}", name_of(target.tier)), options,
      [&](const CodeBuffer& buffer) { return DotEmitter(tile, target, buffer).emit(); });
}

}  // namespace castor::jit
