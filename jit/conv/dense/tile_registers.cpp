// SPDX-License-Identifier: Apache-2.0
// The dense microkernel: what becomes of accumulators that are tile registers (AMX).
#include <cstddef>

#include "jit/conv/dense/tile_emitter.hpp"

namespace castor::jit::dense {

/// Their accumulators go to the output, or to the staging buffer.
void DenseEmitter::emit_tile_registers() {
  const Section loop = code_.section(CodeSection::tile_loop);
  if (is_staged()) results_.emplace(code_, results_context());
  tile_loop_.emplace(tile_, code_, results_context() + Coroutine::frame_bytes,
                     results_ ? &*results_ : nullptr);
  if (!results_) return tile_loop_->emit(reg::output_step, [&] { emit_row_output(); });
  Xbyak::Label tiles;
  code_.jmp(tiles, Xbyak::CodeGenerator::T_NEAR);
  results_->emit_begin();
  emit_tile_results();
  results_->emit_end();
  code_.L(tiles);
  tile_loop_->emit(reg::row_bytes, [&] { code_.mov(reg::row_output, Xbyak::util::rsp); });
}

void DenseEmitter::emit_tile_results() {
  if (!epilogue_) code_.mov(reg::output_step, argument(offsetof(DenseArguments, output_step)));
  if (tile_.window_sums != WindowSums::none) emit_staged_compensation();
  if (transposes()) return emit_transposed();
  epilogue_ ? emit_rows_epilogue() : emit_staged_rows();
}

/// The address in an output of i32 whose rows are channels, at the tile's first pixel and channel.
void DenseEmitter::emit_output_of_results() {
  const Section address = code_.section(CodeSection::output_address);
  code_.mov(reg::output, tile_loop_->result_pixel());
  code_.shl(reg::output, 2);
  code_.mov(reg::scratch, tile_loop_->result_channel());
  code_.imul(reg::scratch, reg::output_step);
  code_.add(reg::output, reg::scratch);
  code_.add(reg::output, argument(offsetof(DenseArguments, output)));
}

/// In a loop over pixels, whose window sums follow each other.
void DenseEmitter::emit_staged_compensation() {
  const Section compensation = code_.section(CodeSection::compensation);
  const Reg64 next_sum = reg::row_output;
  const Xmm window_sum = reg(vectors_);
  const Xmm sums = reg(vectors_ + 1);
  const Xmm product = reg(vectors_ + 2);
  if (tile_.window_sums != WindowSums::products) {
    code_.mov(reg::scratch, argument(offsetof(DenseArguments, weight_zero_points)));
    code_.mov(reg::row_output, tile_loop_->result_channel());
    for (int v = 0; v < vectors_; ++v) {
      code_.vmovups(reg(v), code_.ptr[reg::scratch + reg::row_output * 4 + v * vector_bytes()]);
    }
  }
  code_.mov(next_sum, tile_loop_->result_pixel());
  code_.shl(next_sum, 2);
  code_.add(next_sum, argument(offsetof(DenseArguments, window_sums)));
  emit_pixel_loop(0, [&] {
    const Section subtraction = code_.section(CodeSection::compensation);
    code_.vpbroadcastd(window_sum, code_.ptr[next_sum]);
    code_.add(next_sum, 4);
    for (int v = 0; v < vectors_; ++v) {
      const Xbyak::Address at = code_.ptr[Xbyak::util::rsp + reg::staged + v * vector_bytes()];
      code_.vmovups(sums, at);
      emit_subtract_window_sums(sums, window_sum, reg(v), product);
      code_.vmovups(at, sums);
    }
  });
}

void DenseEmitter::emit_staged_rows() {
  const Section stores = code_.section(CodeSection::stores);
  emit_row_output();
  emit_pixel_loop(0, [&] {
    const Section rows = code_.section(CodeSection::stores);
    for (int v = 0; v < vectors_; ++v) {
      const int offset = v * vector_bytes();
      const bool is_whole = v + 1 < vectors_ || last_lanes() == lanes_;
      code_.vmovups(reg(v), code_.ptr[Xbyak::util::rsp + reg::staged + offset]);
      is_whole ? code_.vmovups(code_.ptr[reg::row_output + offset], reg(v))
               : emit_masked_store(reg::row_output, reg(v), offset);
    }
    emit_add_output_step(reg::row_output);
  });
}

}  // namespace castor::jit::dense
