// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/accumulators.hpp"

#include <algorithm>

#include "jit/emit/control_flow.hpp"
#include "jit/emit/op_helpers.hpp"

namespace castor::jit {

namespace {

/// Registers for temporaries besides the partial results: one, and those that a fold takes.
int temporaries(const Nest& nest, const Target& target) {
  int most = 0;
  for (const MemoryOperand& sink : nest.program.sinks) {
    if (sink.fold == Fold::any_nan) continue;  // in NanMasks
    most = std::max(most, fold_scratch_vectors(sink.fold, bits_of(sink.element), target));
  }
  return 1 + most;
}

/// Vectors in registers: partial results, or those being folded at the end of a row.
int partial_vectors(const Nest& nest, const ChunkPlan& plan) {
  if (!plan.folds_in_registers) return 1;
  return plan.fold_vectors * static_cast<int>(nest.program.sinks.size());
}

}  // namespace

void FoldSink::emit_store(LaneEmitter& emitter, const LaneInst& inst) {
  Assembler& code = emitter.code();
  const int lane_bits = bits_of(accumulator_.element);
  const int bits = emitter.lanes() * lane_bits;
  const ScratchForFold scratch(emitter, accumulator_.fold, lane_bits);
  const OwnedVector folded = emitter.scratch();
  const Xmm to = folded.as(bits);
  const Xmm value = vector_register(emitter.use(inst.a).getIdx(), bits);
  const ChunkAddress chunk = locator_.emit_chunk_address(operand_, 0);
  const Xbyak::Address at = address_of(code, chunk);
  if (chunk.mode == ChunkMode::masked) {
    emit_move_masked(code, to | tail_mask | Xbyak::util::T_z, at, lane_bits);
    emit_fold(code, emitter.target(), accumulator_.fold, lane_bits, to, to, value,
              scratch.vectors());
    return emit_move_masked(code, at | tail_mask, to, lane_bits);
  }
  emit_move_whole(code, to, at, bits);
  emit_fold(code, emitter.target(), accumulator_.fold, lane_bits, to, to, value, scratch.vectors());
  emit_move_whole(code, at, to, bits);
}

TakenRegisters RowAccumulators::taken(const Nest& nest, const ChunkPlan& plan,
                                      const Target& target) {
  const int count = partial_vectors(nest, plan) + temporaries(nest, target);
  const uint32_t lowest = (uint32_t{1} << count) - 1;
  return {.vectors = lowest << (target.vector_registers() - count),
          .masks = finds_nans(nest.program) ? NanMasks::taken_masks : 0};
}

int RowAccumulators::stack_bytes(const ChunkPlan& plan) { return plan.fold_vectors * 64; }

RowAccumulators::RowAccumulators(const Nest& nest, const ChunkPlan& plan, LaneEmitter& lanes,
                                 const Frame& frame, OperandLocator& locator)
    : nest_(nest),
      plan_(plan),
      target_(lanes.target()),
      code_(lanes.code()),
      frame_(frame),
      locator_(locator) {
  for (size_t i = 0; i < nest.outputs.size(); ++i) {
    sinks_.push_back(&row_sinks_.emplace_back(*this, i));
  }
}

/// Partial results are in the highest registers, temporaries below them.
Xmm RowAccumulators::partial(size_t accumulator, int vector) const {
  const int index = static_cast<int>(accumulator) * plan_.fold_vectors + vector;
  return vector_register(target_.vector_registers() - 1 - index, chunk_bits(accumulator));
}

Xmm RowAccumulators::temporary(int index, int bits) const {
  return vector_register(target_.vector_registers() - 1 - partial_vectors(nest_, plan_) - index,
                         bits);
}

FoldScratch RowAccumulators::fold_scratch(size_t k) const {
  FoldScratch scratch = FoldScratch();
  const int count = fold_scratch_vectors(accumulator(k).fold, lane_bits(k), target_);
  for (int i = 0; i < count; ++i) scratch[static_cast<size_t>(i)] = temporary(1 + i, 128);
  return scratch;
}

Xbyak::Address RowAccumulators::on_stack(size_t accumulator, int vector) const {
  const int offset = frame_.staging_offset(nest_.inputs.size() + accumulator);
  return code_.ptr[gpr::stack + offset + vector * chunk_bytes(accumulator)];
}

void RowAccumulators::emit_load_identity(const Xmm& to, size_t accumulator) {
  const int bits = lane_bits(accumulator);
  const uint64_t identity = fold_identity(nest_.program.sinks[accumulator].fold, bits);
  if (identity == 0) {
    const Xmm low = vector_register(to.getIdx(), 128);
    target_.has_avx512() ? code_.vpxord(low, low, low) : code_.vpxor(low, low, low);
    return;
  }
  switch (bits) {
    case 8: return code_.vpbroadcastb(to, code_.constant_of(static_cast<uint8_t>(identity)));
    case 16: return code_.vpbroadcastw(to, code_.constant_of(static_cast<uint16_t>(identity)));
    case 32: return code_.vpbroadcastd(to, code_.constant_of(static_cast<uint32_t>(identity)));
    default: return code_.vpbroadcastq(to, code_.constant_of(identity));
  }
}

void RowAccumulators::emit_begin_row() {
  for (size_t k = 0; k < sinks_.size(); ++k) {
    if (finds_nans_in(k)) {
      nan_masks(k).emit_begin_row();
      continue;
    }
    if (!plan_.folds_in_registers) emit_load_identity(temporary(0, chunk_bits(k)), k);
    for (int v = 0; v < plan_.fold_vectors; ++v) {
      if (plan_.folds_in_registers) {
        emit_load_identity(partial(k, v), k);
      } else {
        emit_move_whole(code_, on_stack(k, v), temporary(0, chunk_bits(k)), chunk_bits(k));
      }
    }
  }
}

void RowAccumulators::emit_begin_tail() {
  if (!plan_.folds_in_registers || !plan_.folds_in_order) return;
  for (size_t k = 0; k < sinks_.size(); ++k) {
    for (int v = 0; v < plan_.fold_vectors; ++v) {
      emit_move_whole(code_, on_stack(k, v), partial(k, v), chunk_bits(k));
    }
  }
}

void RowAccumulators::emit_end_tail() {
  if (!plan_.folds_in_registers || !plan_.folds_in_order) return;
  for (size_t k = 0; k < sinks_.size(); ++k) {
    for (int v = 0; v < plan_.fold_vectors; ++v) {
      emit_move_whole(code_, partial(k, v), on_stack(k, v), chunk_bits(k));
    }
  }
}

void RowAccumulators::emit_fold_chunk(LaneEmitter& emitter, const LaneInst& inst, size_t k) {
  const Xmm value = vector_register(emitter.use(inst.a).getIdx(), chunk_bits(k));
  const ChunkMode mode = locator_.mode(nest_.inputs.size() + k);
  if (mode != ChunkMode::whole) return emit_fold_tail(emitter, k, value);
  const auto chunk = static_cast<int>(locator_.element_of_iteration() / plan_.lanes);
  if (finds_nans_in(k)) return nan_masks(k).emit_chunk(chunk, value, partial(k, 0));
  const int vector = chunk % plan_.fold_vectors;
  if (!plan_.folds_in_registers) {
    return emit_fold_on_stack(emitter, k, value, on_stack(k, vector), false);
  }
  const ScratchForFold scratch(emitter, accumulator(k).fold, lane_bits(k));
  emit_fold(code_, target_, accumulator(k).fold, lane_bits(k), partial(k, vector),
            partial(k, vector), value, scratch.vectors());
}

/// The lanes of a chunk of the tail: into the first partial result where order does not matter,
/// else into that of the chunk's number.
void RowAccumulators::emit_fold_tail(LaneEmitter& emitter, size_t k, const Xmm& value) {
  if (finds_nans_in(k)) return nan_masks(k).emit_tail(emitter, value, tail_mask);
  const bool in_register = plan_.folds_in_registers && !plan_.folds_in_order;
  OwnedVector blanked;
  Xmm lanes = value;
  if (!target_.has_avx512()) {
    blanked = emit_blank_lanes(emitter, k, value);
    lanes = blanked.as(chunk_bits(k));
  }
  if (in_register) {
    const ScratchForFold scratch(emitter, accumulator(k).fold, lane_bits(k));
    Xmm to = partial(k, 0);
    if (target_.has_avx512()) to.setOpmaskIdx(tail_mask.getIdx());
    return emit_fold(code_, target_, accumulator(k).fold, lane_bits(k), to, partial(k, 0), lanes,
                     scratch.vectors());
  }
  const int bytes = lane_bits(k) / 8;
  code_.imul(gpr::counter, gpr::index, bytes);
  code_.and_(gpr::counter, static_cast<uint32_t>(plan_.fold_vectors * chunk_bytes(k) - 1));
  const int offset = frame_.staging_offset(nest_.inputs.size() + k);
  emit_fold_on_stack(emitter, k, lanes, code_.ptr[gpr::stack + gpr::counter + offset],
                     target_.has_avx512());
}

/// AVX2: the chunk with neutral lanes where it has no elements.
OwnedVector RowAccumulators::emit_blank_lanes(LaneEmitter& emitter, size_t k, const Xmm& value) {
  const int bits = std::max(128, chunk_bits(k));
  const int vector_bytes = 32;
  std::vector<uint8_t> ones_then_zeros(static_cast<size_t>(2 * vector_bytes), 0);
  std::fill_n(ones_then_zeros.begin(), vector_bytes, uint8_t{0xff});
  OwnedVector mask = emitter.scratch();
  OwnedVector blanked = emitter.scratch();
  code_.imul(gpr::scratch, frame_.chunk_count(), lane_bits(k) / 8);
  code_.lea(gpr::counter, code_.constant(ones_then_zeros));
  code_.sub(gpr::counter, gpr::scratch);
  code_.vmovups(mask.as(bits), code_.ptr[gpr::counter + vector_bytes]);
  emit_load_identity(blanked.as(bits), k);
  code_.vpblendvb(blanked.as(bits), blanked.as(bits), vector_register(value.getIdx(), bits),
                  mask.as(bits));
  return blanked;
}

void RowAccumulators::emit_fold_on_stack(LaneEmitter& emitter, size_t k, const Xmm& value,
                                         const Xbyak::Address& at, bool masked) {
  const ScratchForFold scratch(emitter, accumulator(k).fold, lane_bits(k));
  const OwnedVector folded = emitter.scratch();
  const Xmm old = folded.as(chunk_bits(k));
  emit_move_whole(code_, old, at, chunk_bits(k));
  Xmm to = old;
  if (masked) to.setOpmaskIdx(tail_mask.getIdx());
  emit_fold(code_, target_, accumulator(k).fold, lane_bits(k), to, old, value, scratch.vectors());
  emit_move_whole(code_, at, old, chunk_bits(k));
}

void RowAccumulators::emit_end_row() {
  for (size_t k = 0; k < sinks_.size(); ++k) {
    if (finds_nans_in(k)) {
      emit_fold_masks(k);
      continue;
    }
    const Xmm vector = emit_fold_vectors(k);
    emit_fold_lanes(k, vector);
    emit_fold_into_memory(k, vector_register(vector.getIdx(), 128));
  }
}

/// The accumulator's element becomes a NaN where a lane has had one.
void RowAccumulators::emit_fold_masks(size_t k) {
  nan_masks(k).emit_test();
  emit_unless(code_, Condition::equal, [&] {
    const Xbyak::Reg64 pointer = frame_.emit_pointer(nest_.inputs.size() + k);
    code_.or_(gpr::counter, -1);
    lane_bits(k) == 32 ? code_.mov(code_.dword[pointer], gpr::counter.cvt32())
                       : code_.mov(code_.qword[pointer], gpr::counter);
  });
}

/// Folds vectors by halves until one is left.
Xmm RowAccumulators::emit_fold_vectors(size_t k) {
  const FoldScratch scratch = fold_scratch(k);
  const Fold fold = accumulator(k).fold;
  const Xmm other = temporary(0, chunk_bits(k));
  const Xmm working = vector_register(target_.vector_registers() - 1, chunk_bits(k));
  for (int half = plan_.fold_vectors / 2; half > 0; half /= 2) {
    for (int v = 0; v < half; ++v) {
      if (plan_.folds_in_registers) {
        emit_fold(code_, target_, fold, lane_bits(k), partial(k, v), partial(k, v),
                  partial(k, v + half), scratch);
        continue;
      }
      emit_move_whole(code_, working, on_stack(k, v), chunk_bits(k));
      emit_move_whole(code_, other, on_stack(k, v + half), chunk_bits(k));
      emit_fold(code_, target_, fold, lane_bits(k), working, working, other, scratch);
      emit_move_whole(code_, on_stack(k, v), working, chunk_bits(k));
    }
  }
  if (plan_.folds_in_registers) return partial(k, 0);
  emit_move_whole(code_, working, on_stack(k, 0), chunk_bits(k));
  return working;
}

/// Folds the halves of a vector until one lane is left, the lowest.
void RowAccumulators::emit_fold_lanes(size_t k, const Xmm& vector) {
  const FoldScratch scratch = fold_scratch(k);
  for (int bits = chunk_bits(k) / 2; bits >= lane_bits(k); bits /= 2) {
    const Xmm low = vector_register(vector.getIdx(), bits);
    const Xmm high = temporary(0, bits);
    if (bits == 256) {
      code_.vextracti64x4(high, zmm(vector), 1);
    } else if (bits == 128) {
      target_.has_avx512() ? code_.vextracti32x4(high, ymm(vector), 1)
                           : code_.vextracti128(high, ymm(vector), 1);
    } else {
      code_.vpsrldq(high, low, bits / 8);
    }
    emit_fold(code_, target_, accumulator(k).fold, lane_bits(k), low, low, high, scratch);
  }
}

/// Folds the lowest lane into the accumulator's element.
void RowAccumulators::emit_fold_into_memory(size_t k, const Xmm& vector) {
  const Xbyak::Reg64 pointer = frame_.emit_pointer(nest_.inputs.size() + k);
  const Xmm old = temporary(0, 128);
  const Xbyak::Reg32 word = gpr::counter.cvt32();
  const int bits = lane_bits(k);
  switch (bits) {
    case 8: code_.movzx(word, code_.byte[pointer]); break;
    case 16: code_.movzx(word, code_.word[pointer]); break;
    default: break;
  }
  if (bits <= 16) {
    code_.vmovd(old, word);
  } else {
    emit_move_whole(code_, old, code_.ptr[pointer], bits);
  }
  emit_fold(code_, target_, accumulator(k).fold, bits, vector, vector, old, fold_scratch(k));
  if (bits > 16) return emit_move_whole(code_, code_.ptr[pointer], vector, bits);
  code_.vmovd(word, vector);
  if (bits == 8) {
    code_.mov(code_.byte[pointer], gpr::counter.cvt8());
  } else {
    code_.mov(code_.word[pointer], gpr::counter.cvt16());
  }
}

}  // namespace castor::jit
