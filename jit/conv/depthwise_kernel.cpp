// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/depthwise_kernel.hpp"

#include <algorithm>

#include "jit/conv/depthwise_emitter.hpp"

namespace castor::jit {

namespace depthwise {

void DepthwiseEmitter::emit_entry() {
  code_.push_all(saved_registers);
  if (epilogue_) enter_epilogue();
  code_.mov(reg::input, argument(offsetof(DepthwiseArguments, input)));
  code_.mov(reg::output, argument(offsetof(DepthwiseArguments, output)));
  code_.mov(reg::weights, argument(offsetof(DepthwiseArguments, weights)));
  code_.mov(reg::start, argument(offsetof(DepthwiseArguments, start)));
  code_.mov(reg::row_step, argument(offsetof(DepthwiseArguments, input_row_step)));
  code_.mov(reg::output_step, argument(offsetof(DepthwiseArguments, output_row_step)));
  code_.vpbroadcastq(vectors_.padding, argument(offsetof(DepthwiseArguments, padding)));
  if (form_.flips_input) {
    code_.vpbroadcastd(vectors_.flip, code_.constant_of(uint32_t{0x80808080}));
    code_.vpxord(vectors_.padding, vectors_.padding, vectors_.flip);
  }
  if (has_words(target_)) {
    code_.vpbroadcastd(vectors_.even_bytes, code_.constant_of(uint32_t{0x00ff00ff}));
  }
}

void DepthwiseEmitter::enter_epilogue() {
  code_.mov(reg::scratch, Xbyak::util::rsp);
  code_.sub(Xbyak::util::rsp, stack_bytes + TileEpilogueEmitter::frame_bytes);
  code_.and_(Xbyak::util::rsp, -64);
  code_.mov(code_.qword[Xbyak::util::rsp], reg::scratch);
  epilogue_->enter();
  epilogue_->begin(argument(offsetof(DepthwiseArguments, epilogue)));
}

void DepthwiseEmitter::emit_channel() {
  if (epilogue_) epilogue_->begin_row();
  if (vectors_.keeps_start) code_.vpbroadcastd(vectors_.start, code_.ptr[reg::start]);
  if (form_.sums_windows()) emit_row_start();
  if (vectors_.keeps_weights) {
    for (int i = 0; i < vectors_.weights; ++i) {
      code_.vpbroadcastd(vectors_.weight(i), weight_address(i));
    }
  }
  code_.mov(reg::bands, argument(offsetof(DepthwiseArguments, blocks)));
}

/// What each row adds to the window sum at first.
void DepthwiseEmitter::emit_row_start() {
  const Zmm& row_start = vectors_.row_start;
  if (!form_.starts_by_row()) return code_.vpxord(row_start, row_start, row_start);
  const uint32_t by_row = 0 - inverse_of_odd(static_cast<uint32_t>(form_.rows));
  code_.vpbroadcastd(row_start, code_.constant_of(by_row));
  code_.vpmulld(row_start, row_start, code_.ptr_b[reg::start]);
}

/// One entry of blocks, by the code that it names.
void DepthwiseEmitter::emit_blocks() {
  code_.add(reg::input, of_blocks(offsetof(DepthwiseBlocks, input)));
  code_.add(reg::output, of_blocks(offsetof(DepthwiseBlocks, output)));
  code_.mov(reg::blocks, of_blocks(offsetof(DepthwiseBlocks, count)));
  if (!epilogue_) code_.mov(reg::prefetched, of_blocks(offsetof(DepthwiseBlocks, prefetched)));
  Xbyak::Label done;
  for (size_t i = 0; i < form_.blocks.size(); ++i) {
    Xbyak::Label next;
    const bool is_last = i + 1 == form_.blocks.size();
    if (!is_last) {
      code_.cmp(of_blocks(offsetof(DepthwiseBlocks, block)), static_cast<uint32_t>(i));
      code_.jne(next, Xbyak::CodeGenerator::T_NEAR);
    }
    block_ = form_.blocks[i];
    emit_blocks_of_code();
    if (is_last) break;
    code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
    code_.L(next);
  }
  code_.L(done);
}

void DepthwiseEmitter::emit_blocks_of_code() {
  Xbyak::Label next_block;
  Xbyak::Label next_columns;
  code_.L(next_block);
  code_.mov(reg::columns, of_blocks(offsetof(DepthwiseBlocks, columns)));
  code_.L(next_columns);
  emit_shuffles();
  emit_positions();
  code_.add(reg::columns, static_cast<int>(sizeof(DepthwiseColumns)));
  code_.cmp(reg::columns, of_blocks(offsetof(DepthwiseBlocks, columns_end)));
  code_.jb(next_columns, Xbyak::CodeGenerator::T_NEAR);
  code_.add(reg::input, of_blocks(offsetof(DepthwiseBlocks, input_block_step)));
  code_.add(reg::output, of_blocks(offsetof(DepthwiseBlocks, output_block_step)));
  code_.dec(reg::blocks);
  code_.jnz(next_block, Xbyak::CodeGenerator::T_NEAR);
}

void DepthwiseEmitter::emit_shuffles() {
  code_.mov(reg::positions, of_columns(offsetof(DepthwiseColumns, count)));
  code_.mov(reg::from, of_columns(offsetof(DepthwiseColumns, input)));
  code_.add(reg::from, reg::input);
  code_.mov(reg::to, of_columns(offsetof(DepthwiseColumns, output)));
  if (epilogue_) code_.shr(reg::to, 2);
  code_.add(reg::to, reg::output);
  code_.kmovq(stored, of_columns(offsetof(DepthwiseColumns, stored)));
  for (int dword = 0; dword < form_.dwords; ++dword) {
    const auto number = static_cast<size_t>(dword);
    code_.kmovq(taken(dword), of_columns(offsetof(DepthwiseColumns, taken) + 8 * number));
    code_.vmovups(vectors_.shuffle(dword),
                  of_columns(offsetof(DepthwiseColumns, shuffle) + 64 * number));
    if (has_vbmi(target_)) continue;
    code_.vmovups(vectors_.pieces(dword),
                  of_columns(offsetof(DepthwiseColumns, pieces) + 64 * number));
  }
}

void DepthwiseEmitter::emit_positions() {
  Xbyak::Label next;
  code_.align_to(32);
  code_.L(next);
  emit_block();
  code_.add(reg::from, of_blocks(offsetof(DepthwiseBlocks, input_column_step)));
  code_.add(reg::to, of_blocks(offsetof(DepthwiseBlocks, output_column_step)));
  code_.dec(reg::positions);
  code_.jnz(next, Xbyak::CodeGenerator::T_NEAR);
}

/// To the next channel; sets the flags that the loop ends by.
void DepthwiseEmitter::emit_channel_step() {
  if (epilogue_) epilogue_->next_row(argument(offsetof(DepthwiseArguments, epilogue)));
  code_.add(reg::input, argument(offsetof(DepthwiseArguments, input_channel_step)));
  code_.add(reg::output, argument(offsetof(DepthwiseArguments, output_channel_step)));
  code_.add(reg::start, 4);
  code_.add(reg::weights, 4 * weight_dwords(form_, target_));
  code_.cmp(reg::weights, argument(offsetof(DepthwiseArguments, weights_end)));
}

void DepthwiseEmitter::emit_exit() {
  if (epilogue_) {
    epilogue_->leave();
    code_.mov(Xbyak::util::rsp, code_.qword[Xbyak::util::rsp]);
  }
  code_.vzeroupper();
  code_.pop_all(saved_registers);
  code_.ret();
}

}  // namespace depthwise

bool fits(const DepthwiseForm& form, const Target& target) {
  constexpr int max_rows = 16;
  constexpr int max_input_rows = 64;  // beyond which code gets long
  constexpr size_t max_blocks = 12;   // likewise
  const bool is_sane = form.rows >= 1 && form.rows <= max_rows && form.row_stride <= max_rows &&
                       form.dwords >= 1 && form.dwords <= DepthwiseColumns::max_dwords &&
                       form.blocks.size() <= max_blocks;
  return is_sane && target.has_avx512() && DepthwiseRegisters(form, target).fit() &&
         std::ranges::all_of(form.blocks, [&](const DepthwiseBlock& block) {
           return form.input_rows(block) <= max_input_rows;
         });
}

int weight_dwords(const DepthwiseForm& form, const Target& target) {
  const int products = form.rows * form.dwords * dwords_of_product(target);
  return products + (has_words(target) ? 0 : form.dwords);
}

namespace {

/// With an epilogue straight-line code gets long: lane operations of all stores, and bytes in all.
constexpr size_t max_epilogue_operations = 1500;
constexpr size_t max_bytes_with_epilogue = size_t{16} << 10;

/// About as many bytes as the code of an output takes: a refusal that is foreseen costs nothing.
size_t bytes_of_output(const TileEpilogue& epilogue, const DepthwiseForm& form,
                       const Target& target) {
  constexpr size_t instruction = 6;
  const size_t taps = static_cast<size_t>(form.dwords) * 3;  // loaded and shuffled
  const auto products = static_cast<size_t>(form.rows * form.dwords * dwords_of_product(target)) *
                        (has_words(target) ? 2 : 1);
  constexpr size_t sum = 7;  // begun, stored, steps
  return instruction * (taps + products + sum + epilogue.program.code.size());
}

}  // namespace

bool may_apply(const TileEpilogue& epilogue, const DepthwiseForm& form, const Target& target) {
  size_t stores = 0;
  for (const DepthwiseBlock& block : form.blocks) stores += static_cast<size_t>(block.outputs);
  return !form.adds && form.dwords <= depthwise::max_epilogue_dwords &&
         stores * epilogue.program.code.size() <= max_epilogue_operations &&
         stores * bytes_of_output(epilogue, form, target) <= max_bytes_with_epilogue &&
         DepthwiseRegisters(form, target, depthwise::spare_vectors(&epilogue)).fit();
}

Result<MachineCode> emit_kernel(const DepthwiseForm& form, const Target& target,
                                const TileEpilogue* epilogue) {
  if (epilogue != nullptr && !may_apply(*epilogue, form, target)) return epilogue_refused();
  Result<MachineCode> code =
      assemble_with_epilogue<depthwise::DepthwiseEmitter>(form, target, epilogue);
  if (!code.ok() || epilogue == nullptr) return code;
  if (code->bytes.size() > max_bytes_with_epilogue) return epilogue_refused();
  return code;
}

}  // namespace castor::jit
