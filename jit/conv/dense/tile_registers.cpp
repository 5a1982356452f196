// SPDX-License-Identifier: Apache-2.0
// The dense microkernel: what becomes of accumulators that are tile registers (AMX).
#include <cstddef>

#include "jit/conv/dense/tile_emitter.hpp"

namespace castor::jit::dense {

void StagedTiles::emit() {
  if (!results_.epilogue)
    code_.mov(reg::output_step, argument(offsetof(DenseArguments, output_step)));
  if (tile_.window_sums != WindowSums::none) emit_compensation();
  if (transposes()) return transposition_.emit();
  results_.epilogue ? row_epilogue_.emit() : emit_rows();
}

/// In a loop over pixels, whose window sums follow each other.
void StagedTiles::emit_compensation() {
  const Section section = code_.section(CodeSection::compensation);
  Compensation compensation(*this);
  const Reg64 next_sum = reg::row_output;
  const Xmm window_sum = reg(vectors_);
  const Xmm sums = reg(vectors_ + 1);
  const Xmm product = reg(vectors_ + 2);
  if (tile_.window_sums != WindowSums::products) {
    code_.mov(reg::scratch, argument(offsetof(DenseArguments, weight_zero_points)));
    code_.mov(reg::row_output, results_.tile_loop->result_channel());
    for (int v = 0; v < vectors_; ++v) {
      code_.vmovups(reg(v), code_.ptr[reg::scratch + reg::row_output * 4 + v * vector_bytes()]);
    }
  }
  code_.mov(next_sum, results_.tile_loop->result_pixel());
  code_.shl(next_sum, 2);
  code_.add(next_sum, argument(offsetof(DenseArguments, window_sums)));
  emit_pixel_loop(0, [&] {
    const Section subtraction = code_.section(CodeSection::compensation);
    code_.vpbroadcastd(window_sum, code_.ptr[next_sum]);
    code_.add(next_sum, 4);
    for (int v = 0; v < vectors_; ++v) {
      const Xbyak::Address at = code_.ptr[Xbyak::util::rsp + reg::staged + v * vector_bytes()];
      code_.vmovups(sums, at);
      compensation.emit_subtract(sums, window_sum, reg(v), product);
      code_.vmovups(at, sums);
    }
  });
}

void StagedTiles::emit_rows() {
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
