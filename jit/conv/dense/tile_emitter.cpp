// SPDX-License-Identifier: Apache-2.0
// The frame of the dense microkernel, and the values of its accumulators.
#include "jit/conv/dense/tile_emitter.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "jit/conv/emit_dot_product.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace dense {

namespace {

/// Vector registers besides accumulators and vectors: a broadcast operand, and a product.
constexpr int work_registers = 2;

const std::array saved_registers = {reg::input, reg::tiles, reg::callers_stack, reg::row_output};
const std::array saved_for_epilogue = {Reg64(Operand::R14), Reg64(Operand::R15)};

/// Emits one microkernel: a loop over tiles.
class DenseEmitter {
 public:
  DenseEmitter(const DenseTile& tile, const Target& target, const TileEpilogue* epilogue,
               std::span<uint8_t> buffer)
      : t_(tile, target, buffer), sums_(t_), stores_(t_), stage_(t_, stores_, epilogue) {}

  bool fits_frame() const { return stage_.fits_frame(); }

  MachineCode emit() {
    emit_entry();
    Xbyak::Label next_tile;
    code_.align_to(32);
    code_.L(next_tile);
    sums_.emit_start();
    sums_.emit_loop();
    stage_.is_needed() ? stage_.emit(sums_) : stores_.emit(sums_);
    const size_t step =
        t_.by_pixels() ? static_cast<size_t>(t_.vectors) * sizeof(ConvStore) : sizeof(TilePlace);
    code_.add(reg::stores, static_cast<int>(step));
    code_.dec(reg::tiles);
    code_.jnz(next_tile, Xbyak::CodeGenerator::T_NEAR);
    emit_exit();
    return code_.finish();
  }

 private:
  void emit_entry() {
    code_.push_all(saved_registers);
    if (stage_.has_epilogue()) code_.push_all(saved_for_epilogue);
    if (stage_.is_needed()) {
      code_.mov(reg::callers_stack, Xbyak::util::rsp);
      code_.sub(Xbyak::util::rsp, stage_.frame_bytes());
      code_.and_(Xbyak::util::rsp, -64);
      stage_.emit_entry();
    }
    if (!t_.by_pixels() && t_.target.has_avx512()) {
      stores_.emit_lanes_mask(t_.transposes() ? t_.rows : t_.last_lanes());
    }
    code_.mov(reg::stores, t_.argument(t_.by_pixels() ? offsetof(DenseArguments, stores)
                                                      : offsetof(DenseArguments, places)));
    code_.mov(reg::tiles, t_.argument(offsetof(DenseArguments, tiles)));
    code_.mov(reg::output_step, t_.argument(offsetof(DenseArguments, output_step)));
    code_.mov(reg::k_steps_end, t_.argument(offsetof(DenseArguments, k_step_count)));
    code_.lea(reg::k_steps_end, code_.ptr[reg::k_steps_end * 4 - 4 * t_.tile.peeled_k_steps]);
    code_.add(reg::k_steps_end, t_.argument(offsetof(DenseArguments, k_steps)));
  }

  void emit_exit() {
    if (stage_.is_needed()) {
      stage_.emit_exit();
      code_.mov(Xbyak::util::rsp, reg::callers_stack);
    }
    if (stage_.has_epilogue()) code_.pop_all(saved_for_epilogue);
    code_.vzeroupper();
    code_.pop_all(saved_registers);
    code_.ret();
  }

  TileCode t_;
  Assembler& code_ = t_.code;
  SumsEmitter sums_;
  StoreEmitter stores_;
  StageEmitter stage_;
};

}  // namespace

// ---- k steps

void KStepEmitter::emit_start_of_input() {
  code_.mov(reg::input, t_.store(0, offsetof(TilePlace, pixel)));
  code_.add(reg::input, t_.argument(offsetof(DenseArguments, input)));
  code_.mov(reg::input_step, t_.argument(offsetof(DenseArguments, input_step)));
  code_.lea(reg::input_steps_3, code_.ptr[reg::input_step + reg::input_step * 2]);
  code_.vmovups(t_.product(), code_.constant(vector_constant<uint8_t>(
                                  512, [](int i) { return i % 4 * 16 + i / 4; })));
}

Xbyak::RegExp KStepEmitter::vector_address(int vector, int position) const {
  if (t_.by_pixels()) return reg::pixel + vector * t_.vector_bytes();
  return reg::weights + (position * weight_bytes() + vector * t_.vector_bytes());
}

Xbyak::RegExp KStepEmitter::row_address(int row, int position) const {
  if (t_.by_pixels()) return reg::weights + (position * weight_bytes() + 4 * row);
  const int columns = t_.tile.columns;
  return reg::pixel + (row / columns * t_.tile.row_step + row % columns * t_.tile.pixel_step);
}

void KStepEmitter::emit(const Xbyak::RegExp& at, int position, const TileRows& rows) {
  code_.movsxd(reg::pixel, code_.dword[at + 4 * position]);
  code_.add(reg::pixel, reg::source);
  const bool is_first = rows.begin == 0;
  if (t_.takes_input() && is_first) {
    emit_vectors_of_input();
  } else {
    for (int vector = 0; vector < t_.vectors; ++vector) {
      code_.vmovups(t_.vector(vector), code_.ptr[vector_address(vector, position)]);
    }
    if (t_.by_pixels() && is_first) emit_prefetch_of_next_tile();
  }
  for (int row = rows.begin; row < rows.end; ++row) emit_products(row, position);
}

/// The pixels of four channels, to the registers and to the packed input.
void KStepEmitter::emit_vectors_of_input() {
  constexpr int lanes = ConvStore::max_lanes;
  const std::array rows = {Xbyak::RegExp(reg::input), reg::input + reg::input_step,
                           reg::input + reg::input_step * 2, reg::input + reg::input_steps_3};
  for (int vector = 0; vector < t_.vectors; ++vector) {
    const Xbyak::Zmm to(t_.vector(vector).getIdx());
    code_.vmovdqu32(Xmm(to.getIdx()), code_.ptr[rows[0] + vector * lanes]);
    for (int row = 1; row < 4; ++row) {
      code_.vinserti32x4(to, to, code_.ptr[rows[static_cast<size_t>(row)] + vector * lanes], row);
    }
    code_.vpermb(to, Xbyak::Zmm(t_.product().getIdx()), to);
    if (t_.tile.source == PixelSource::signed_input) {
      code_.vpxord(to, to, code_.constant(vector_constant<uint8_t>(512, [](int) { return 0x80; })));
    }
    code_.vmovups(code_.ptr[reg::pixel + vector * t_.vector_bytes()], to);
  }
  constexpr int line_bytes = 64;
  for (const Xbyak::RegExp& row : rows) code_.prefetcht0(code_.ptr[row + line_bytes]);
  code_.lea(reg::input, code_.ptr[reg::input + reg::input_step * 4]);
}

/// Packed input comes from L2; no hardware prefetcher sees which cache lines the next tile needs.
void KStepEmitter::emit_prefetch_of_next_tile() {
  if (!t_.target.has_avx512()) return;
  for (int vector = 0; vector < t_.vectors; ++vector) {
    const int offset = (t_.vectors + vector) * t_.vector_bytes();
    code_.prefetcht0(code_.ptr[reg::pixel + offset]);
  }
}

void KStepEmitter::emit_products(int row, int position) {
  code_.vpbroadcastd(t_.broadcast(), code_.ptr[row_address(row, position)]);
  for (int vector = 0; vector < t_.vectors; ++vector) {
    const Xmm inputs = t_.by_pixels() ? t_.vector(vector) : t_.broadcast();
    const Xmm weights = t_.by_pixels() ? t_.broadcast() : t_.vector(vector);
    emit_dot_product(code_, t_.target, t_.tile.engine, t_.sum(row, vector), inputs, weights,
                     t_.product());
  }
}

// ---- sums

void SumsEmitter::emit_start() {
  code_.mov(reg::source, t_.argument(offsetof(DenseArguments, source)));
  code_.add(reg::source, t_.store(0, offsetof(TilePlace, source)));
  if (t_.tile.prefetches_output) emit_prefetch_of_output();
  code_.mov(reg::scratch, t_.argument(offsetof(DenseArguments, start)));
  for (int row = 0; row < t_.rows; ++row) {
    for (int vector = 0; vector < t_.vectors; ++vector) {
      const Xmm sum = t_.sum(row, vector);
      if (t_.by_pixels()) {
        code_.vpbroadcastd(sum, code_.ptr[reg::scratch + 4 * row]);
      } else if (row == 0) {
        code_.vmovups(sum, code_.ptr[reg::scratch + vector * t_.vector_bytes()]);
      } else {
        code_.vmovaps(sum, t_.sum(0, vector));
      }
    }
  }
  code_.mov(reg::weights, t_.argument(offsetof(DenseArguments, weights)));
  if (t_.takes_input()) k_step_.emit_start_of_input();
}

void SumsEmitter::emit_prefetch_of_output() {
  t_.emit_output_of(0);
  for (int row = 0; row < t_.rows; ++row) {
    if (row > 0) t_.emit_add_output_step(reg::output);
    for (int vector = 0; vector < t_.vectors; ++vector) {
      code_.prefetchw(code_.ptr[reg::output + vector * t_.vector_bytes()]);
    }
  }
}

void SumsEmitter::emit_loop() {
  if (!t_.tile.loops_k_groups) return emit_k_steps();
  Xbyak::Label next_group;
  code_.mov(reg::k_groups, t_.argument(offsetof(DenseArguments, k_groups)));
  code_.L(next_group);
  emit_k_steps();
  code_.add(reg::source, t_.argument(offsetof(DenseArguments, k_group_step)));
  code_.dec(reg::k_groups);
  code_.jnz(next_group, Xbyak::CodeGenerator::T_NEAR);
}

/// Two k steps at a time, an odd one first; an even number, which may be 0, before peeled ones.
void SumsEmitter::emit_k_steps() {
  const TileRows all = {0, t_.rows};
  const Xbyak::RegExp at = reg::k_steps_end + reg::k_step;
  Xbyak::Label pairs;
  Xbyak::Label done;
  Xbyak::Label next;
  code_.mov(reg::k_step, t_.argument(offsetof(DenseArguments, k_steps)));
  code_.sub(reg::k_step, reg::k_steps_end);
  if (t_.tile.peeled_k_steps > 0) {
    code_.test(reg::k_step, reg::k_step);
    code_.jz(done, Xbyak::CodeGenerator::T_NEAR);
  } else {
    code_.test(reg::k_step, 4);
    code_.jz(pairs, Xbyak::CodeGenerator::T_NEAR);
    k_step_.emit(at, 0, all);
    code_.add(reg::weights, k_step_.weight_bytes());
    code_.add(reg::k_step, 4);
    code_.jz(done, Xbyak::CodeGenerator::T_NEAR);
    code_.L(pairs);
  }
  code_.align_to(32);
  code_.L(next);
  k_step_.emit(at, 0, all);
  k_step_.emit(at, 1, all);
  code_.add(reg::weights, 2 * k_step_.weight_bytes());
  code_.add(reg::k_step, 8);
  code_.jnz(next, Xbyak::CodeGenerator::T_NEAR);
  code_.L(done);
}

void SumsEmitter::emit_groups(const std::function<void(const TileRows&)>& emit_end) {
  const int count = t_.tile.peeled_k_steps > 0 ? rows_of_group(t_.vectors) : t_.rows;
  for (int first = 0; first < t_.rows; first += count) {
    const TileRows group = {first, std::min(first + count, t_.rows)};
    emit_peeled_k_steps(group);
    emit_compensation(group);
    emit_end(group);
  }
}

void SumsEmitter::emit_peeled_k_steps(const TileRows& group) {
  const int count = t_.tile.peeled_k_steps;
  if (count == 0) return;
  Xbyak::Label next;
  code_.mov(reg::k_step, -4 * count);
  code_.L(next);
  k_step_.emit(reg::k_steps_end + reg::k_step + 4 * count, 0, group);
  code_.add(reg::weights, k_step_.weight_bytes());
  code_.add(reg::k_step, 4);
  code_.jnz(next, Xbyak::CodeGenerator::T_NEAR);
  code_.sub(reg::weights, k_step_.weight_bytes() * count);
}

/// Subtracts window sums times zero points: those along the vectors are loaded once.
void SumsEmitter::emit_compensation(const TileRows& rows) {
  if (t_.tile.window_sums == WindowSums::none) return;
  const auto emit_address = [&](bool of_sums) {
    if (!of_sums) {
      code_.mov(reg::scratch, t_.argument(offsetof(DenseArguments, weight_zero_points)));
      return;
    }
    code_.mov(reg::scratch, t_.store(0, t_.by_pixels() ? offsetof(TilePlace, source)
                                                       : offsetof(TilePlace, pixel)));
    if (!t_.by_pixels()) code_.shl(reg::scratch, 2);
    code_.add(reg::scratch, t_.argument(offsetof(DenseArguments, window_sums)));
  };
  emit_address(t_.by_pixels());
  for (int vector = 0; vector < t_.vectors; ++vector) {
    code_.vmovups(t_.vector(vector), code_.ptr[reg::scratch + vector * t_.vector_bytes()]);
  }
  emit_address(!t_.by_pixels());
  for (int row = rows.begin; row < rows.end; ++row) {
    code_.vpbroadcastd(t_.broadcast(), code_.ptr[reg::scratch + 4 * row]);
    for (int vector = 0; vector < t_.vectors; ++vector) {
      emit_subtract_window_sums(code_, t_.target, t_.tile.window_sums, t_.sum(row, vector),
                                t_.vector(vector), t_.broadcast(), t_.product());
    }
  }
}

}  // namespace dense

bool fits(const DenseTile& tile, const Target& target) {
  const int lanes = target.vector_bits() / 32;
  if (std::min({tile.channels, tile.vectors, tile.pixel_rows, tile.columns}) < 1) return false;
  if (tile.store == StorePolicy::transposed && tile.pixels() > lanes) return false;
  const bool has_engine = tile.engine == ProductEngine::i16_pairs ||
                          product_engine_of(target) == ProductEngine::u8_i8_dot;
  const int used = (tile.rows() + 1) * tile.vectors_of(lanes) + dense::work_registers;
  return has_engine && used <= target.vector_registers();
}

int rows_of_group(int vectors) { return std::max(1, 8 / vectors); }

/// Three or four keep the products busy until the stores of a row group have been taken up; an even
/// number is left. Where row groups would be single rows, of many vectors, loading these again for
/// each group costs more than it gains; with 16 registers there are too few accumulators.
int peeled_k_steps_of(size_t k_steps, int vectors, const Target& target) {
  constexpr size_t max = 4;
  if (!target.has_avx512() || rows_of_group(vectors) == 1) return 0;
  return static_cast<int>(k_steps <= max ? k_steps : max - k_steps % 2);
}

Result<MachineCode> emit_kernel(const DenseTile& tile, const Target& target,
                                const TileEpilogue* epilogue) {
  return assemble_with_epilogue<dense::DenseEmitter>(tile, target, epilogue);
}

}  // namespace castor::jit
