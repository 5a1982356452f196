// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/depthwise_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "jit/conv/depthwise_registers.hpp"
#include "jit/conv/row_epilogue.hpp"

namespace castor::jit {

namespace {

using Xbyak::Operand;
using Xbyak::Opmask;
using Xbyak::Reg64;
using Xbyak::Zmm;

/// Registers with one meaning throughout the code.
namespace reg {
const Reg64 arguments(Operand::RDI);
const Reg64 weights(Operand::R9);     ///< of the channel
const Reg64 start(Operand::R10);      ///< of the channel
const Reg64 input(Operand::RCX);      ///< first row of the block
const Reg64 output(Operand::R8);      ///< of the block
const Reg64 bands(Operand::RBP);      ///< the entry of blocks
const Reg64 blocks(Operand::R12);     ///< still to come
const Reg64 columns(Operand::R11);    ///< the entry of column positions
const Reg64 positions(Operand::R13);  ///< of them still to come
const Reg64 from(Operand::RSI);       ///< the next row at the column position
const Reg64 to(Operand::RDX);         ///< the next output
const Reg64 row_step(Operand::R14);
const Reg64 output_step(Operand::R15);
const Reg64 scratch(Operand::RBX);
const Reg64 prefetched(Operand::RAX);  ///< not with an epilogue
}  // namespace reg

const std::array saved_registers = {reg::bands,    reg::blocks,      reg::positions,
                                    reg::row_step, reg::output_step, reg::scratch};

/// Masks: of the lanes that are stored, of the bytes of a guarded source, and of a shuffle's.
const Opmask stored(1);  // as an epilogue has it
const Opmask guard(2);
const Opmask in_row(3);
Opmask taken(int dword) { return Opmask(7 - dword); }

/// An epilogue may overwrite masks but for those of so many shuffles.
constexpr int most_epilogue_dwords = 2;
constexpr uint32_t epilogue_taken_masks = 0xc0;
/// Registers that an epilogue has at least, and one that encodes by tables or looks up.
constexpr int least_epilogue_vectors = 10;
constexpr int least_table_vectors = 16;
/// With an epilogue straight-line code gets long: lane operations of all stores, and bytes in all.
constexpr size_t most_epilogue_operations = 1500;
constexpr size_t most_bytes_with_epilogue = size_t{16} << 10;
/// Of the stack, in front of the epilogue's frame: where the caller's stack is.
constexpr int stack_bytes = 64;

int spare_vectors(const TileEpilogue* epilogue) {
  if (epilogue == nullptr) return 0;
  const bool by_tables = std::ranges::any_of(epilogue->program.code, [](const LaneInst& inst) {
    return looks_up(inst.narrowing) || encodes(inst.narrowing);
  });
  return by_tables ? least_table_vectors : least_epilogue_vectors;
}

/// The number that makes 1 of an odd one, modulo 2^32. Each step doubles the bits that are right.
constexpr uint32_t inverse_of_odd(uint32_t odd) {
  uint32_t inverse = odd;
  for (int bits = 3; bits < 32; bits *= 2) inverse *= 2 - odd * inverse;
  return inverse;
}

/// Emits one kernel. The methods are in the order of the code that they emit.
class DepthwiseEmitter {
 public:
  DepthwiseEmitter(const DepthwiseForm& form, const Target& target, const TileEpilogue* epilogue,
                   std::span<uint8_t> buffer)
      : form_(form),
        target_(target),
        vectors_(form, target, spare_vectors(epilogue)),
        code_(buffer) {
    if (epilogue == nullptr) return;
    const TakenRegisters taken = {vectors_.taken(), epilogue_taken_masks};
    epilogue_ =
        std::make_unique<RowEpilogueEmitter>(code_, target, *epilogue, taken, stack_bytes, reg::to);
  }

  bool fits_frame() const { return !epilogue_ || epilogue_->fits_frame(); }

  MachineCode emit() {
    emit_prologue();
    Xbyak::Label next_channel;
    Xbyak::Label next_blocks;
    code_.L(next_channel);
    emit_channel();
    code_.L(next_blocks);
    emit_blocks();
    code_.add(reg::bands, static_cast<int>(sizeof(DepthwiseBlocks)));
    code_.cmp(reg::bands, argument(offsetof(DepthwiseArguments, blocks_end)));
    code_.jb(next_blocks, Xbyak::CodeGenerator::T_NEAR);
    emit_channel_step();
    code_.jb(next_channel, Xbyak::CodeGenerator::T_NEAR);
    emit_epilogue();
    return code_.finish();
  }

 private:
  /// Where an input row lies.
  enum class Place : uint8_t { inside, guarded, outside };

  void emit_prologue();
  void enter_epilogue();
  void emit_channel();
  void emit_row_start();
  void emit_blocks();
  void emit_blocks_of_code();
  void emit_shuffles();
  void emit_positions();
  void emit_block();
  void emit_row(int row);
  void load_source(int dword, int row);
  template <class Vector>
  void load_source(const Vector& source, const Vector& padding, const Vector& flip, int dword,
                   int row);
  void set_guard(int source, int row);
  void shuffle(int dword);
  void split_words(const Zmm& taps);
  void begin_sums(int row);
  void multiply(int row, const Zmm& taps, int dword);
  void multiply_add(const Zmm& sum, const Zmm& taps, int weight);
  void multiply_add_words(const Zmm& sum, const Zmm& taps, int weight);
  void emit_store(int output);
  void emit_channel_step();
  void emit_epilogue();

  int sources() const { return form_.dword_step == 0 ? 1 : form_.dwords; }
  Place place_of(int row) const {
    const int from_end = form_.input_rows(block_) - 1 - row;
    if (row < block_.above || from_end < block_.below) return Place::outside;
    const bool guarded =
        row < block_.above + block_.guarded_above || from_end < block_.below + block_.guarded_below;
    return guarded ? Place::guarded : Place::inside;
  }
  /// A guarded row among them all.
  int guarded_index(int row) const {
    const int first_below = form_.input_rows(block_) - block_.below - block_.guarded_below;
    return row < first_below ? row - block_.above : row - first_below + block_.guarded_above;
  }
  /// The first output that takes an input row, and the last one; none where that one is before it.
  int first_output(int row) const {
    const int behind = row - form_.rows;  // the last row of an output that is done
    return behind < 0 ? 0 : behind / form_.row_stride + 1;
  }
  int last_output(int row) const { return std::min(row / form_.row_stride, block_.outputs - 1); }
  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }
  Xbyak::Address of_blocks(size_t offset) { return code_.qword[reg::bands + offset]; }
  Xbyak::Address of_columns(size_t offset) { return code_.ptr[reg::columns + offset]; }
  Xbyak::Address weight_address(int index) { return code_.ptr[reg::weights + 4 * index]; }

  const DepthwiseForm& form_;
  const Target& target_;
  const DepthwiseRegisters vectors_;
  DepthwiseBlock block_;  ///< whose code is being emitted
  Assembler code_;
  std::unique_ptr<RowEpilogueEmitter> epilogue_;  ///< null where there is none
};

void DepthwiseEmitter::emit_prologue() {
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
  if (form_.subtracts_window_sums) emit_row_start();
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

/// All rows at one column position.
void DepthwiseEmitter::emit_block() {
  if (form_.subtracts_window_sums) {
    code_.vpxord(vectors_.window_sum, vectors_.window_sum, vectors_.window_sum);
  }
  for (int row = 0; row < form_.input_rows(block_); ++row) {
    if (first_output(row) <= last_output(row)) emit_row(row);
    code_.add(reg::from, reg::row_step);
    const int behind = row - form_.rows + 1;
    if (behind >= 0 && behind % form_.row_stride == 0) emit_store(behind / form_.row_stride);
  }
}

/// One input row: into the sums of all outputs that take it.
void DepthwiseEmitter::emit_row(int row) {
  const bool outside = place_of(row) == Place::outside;
  begin_sums(row);
  if (form_.subtracts_window_sums) code_.vmovdqa64(vectors_.row_sum, vectors_.row_start);
  if (outside) split_words(vectors_.padding);
  for (int dword = 0; dword < form_.dwords; ++dword) {
    if (!outside) {
      if (dword < sources()) load_source(dword, row);
      shuffle(dword);
    }
    const bool takes_padding = outside && !has_words(target_);
    multiply(row, takes_padding ? vectors_.padding : vectors_.taps, dword);
  }
  if (form_.subtracts_window_sums) {
    code_.vpaddd(vectors_.window_sum, vectors_.window_sum, vectors_.row_sum);
  }
}

/// The sum of the output that this row is the first one of. What window sums have added up to is
/// added here and subtracted at the end, so that the rows between remain.
void DepthwiseEmitter::begin_sums(int row) {
  const int output = row / form_.row_stride;
  if (row % form_.row_stride != 0 || output >= block_.outputs) return;
  const Zmm sum = vectors_.sum(output);
  if (form_.starts_by_row()) return code_.vmovdqa64(sum, vectors_.window_sum);
  if (!vectors_.keeps_start) code_.vpbroadcastd(sum, code_.ptr[reg::start]);
  const Zmm start = vectors_.keeps_start ? vectors_.start : sum;
  if (form_.subtracts_window_sums) {
    code_.vpaddd(sum, start, vectors_.window_sum);
  } else if (vectors_.keeps_start) {
    code_.vmovdqa64(sum, start);
  }
}

void DepthwiseEmitter::load_source(int dword, int row) {
  if (form_.source_bytes == 64) {
    return load_source(vectors_.source, vectors_.padding, vectors_.flip, dword, row);
  }
  const auto half = [](const Zmm& vector) { return Xbyak::Ymm(vector.getIdx()); };
  load_source(half(vectors_.source), half(vectors_.padding), half(vectors_.flip), dword, row);
}

template <class Vector>
void DepthwiseEmitter::load_source(const Vector& source, const Vector& padding, const Vector& flip,
                                   int dword, int row) {
  const Xbyak::Address address = code_.ptr[reg::from + dword * form_.dword_step];
  if (place_of(row) == Place::inside) {
    if (form_.flips_input) return code_.vpxord(source, flip, address);
    return code_.vmovups(source, address);
  }
  set_guard(dword, row);
  if (!form_.flips_input) {
    code_.vmovdqa64(source, padding);
    return code_.vmovdqu8(source | guard, address);
  }
  code_.vpxord(source, padding, flip);
  code_.vmovdqu8(source | guard, address);
  code_.vpxord(source, source, flip);
}

/// The bytes of a source that lie in the image.
void DepthwiseEmitter::set_guard(int source, int row) {
  const size_t at = offsetof(DepthwiseColumns, loaded) + 8 * static_cast<size_t>(source);
  code_.kmovq(guard, of_columns(at));
  if (!block_.masks_rows) return;
  code_.mov(reg::scratch, of_blocks(offsetof(DepthwiseBlocks, rows_loaded)));
  code_.kmovq(in_row, code_.ptr[reg::scratch + 8 * guarded_index(row)]);
  code_.kandq(guard, guard, in_row);
}

/// The four taps of each lane's pixel; those outside the row are padding.
void DepthwiseEmitter::shuffle(int dword) {
  const Zmm& taps = vectors_.taps;
  if (has_vbmi(target_)) {
    code_.vmovdqa64(taps, vectors_.padding);
    code_.vpermb(taps | taken(dword), vectors_.shuffle(dword), vectors_.source);
  } else {
    const Zmm& moved = vectors_.moved;
    code_.vpermd(moved, vectors_.pieces(dword), vectors_.source);
    code_.vmovdqa64(taps, vectors_.padding);
    code_.vpshufb(taps | taken(dword), moved, vectors_.shuffle(dword));
  }
  split_words(taps);
}

/// Without VNNI: bytes as words, the even ones and the odd ones.
void DepthwiseEmitter::split_words(const Zmm& taps) {
  if (!has_words(target_)) return;
  code_.vpsrlw(vectors_.odd_taps, taps, 8);
  code_.vpandd(vectors_.taps, taps, vectors_.even_bytes);
}

/// `taps` of a row: into the sums of outputs, and into the row's own.
void DepthwiseEmitter::multiply(int row, const Zmm& taps, int dword) {
  if (form_.subtracts_window_sums) {
    multiply_add(vectors_.row_sum, taps, form_.rows * form_.dwords + dword);
  }
  for (int output = first_output(row); output <= last_output(row); ++output) {
    const int tap = row - output * form_.row_stride;
    multiply_add(vectors_.sum(output), taps, tap * form_.dwords + dword);
  }
}

/// sum += taps times the weights of that number.
void DepthwiseEmitter::multiply_add(const Zmm& sum, const Zmm& taps, int weight) {
  if (has_words(target_)) {
    multiply_add_words(sum, taps, 2 * weight);
    multiply_add_words(sum, vectors_.odd_taps, 2 * weight + 1);
  } else if (form_.signed_input) {
    if (!vectors_.keeps_weights) code_.vpbroadcastd(vectors_.product, weight_address(weight));
    code_.vpdpbusd(sum, vectors_.keeps_weights ? vectors_.weight(weight) : vectors_.product, taps);
  } else if (vectors_.keeps_weights) {
    code_.vpdpbusd(sum, taps, vectors_.weight(weight));
  } else {
    code_.vpdpbusd(sum, taps, code_.ptr_b[reg::weights + 4 * weight]);
  }
}

void DepthwiseEmitter::multiply_add_words(const Zmm& sum, const Zmm& taps, int weight) {
  const Zmm& product = vectors_.product;
  if (!vectors_.keeps_weights) code_.vpbroadcastd(product, weight_address(weight));
  code_.vpmaddwd(product, taps, vectors_.keeps_weights ? vectors_.weight(weight) : product);
  code_.vpaddd(sum, sum, product);
}

void DepthwiseEmitter::emit_store(int output) {
  const Zmm sum = vectors_.sum(output);
  if (form_.subtracts_window_sums) code_.vpsubd(sum, sum, vectors_.window_sum);
  if (epilogue_) {
    epilogue_->apply(sum);
    epilogue_->prefetch(of_blocks(offsetof(DepthwiseBlocks, prefetched)), reg::scratch);
  } else {
    if (form_.adds) code_.vpaddd(sum | stored, sum, code_.ptr[reg::to]);
    code_.vmovdqu32(code_.ptr[reg::to] | stored, sum);
    code_.prefetchw(code_.ptr[reg::to + reg::prefetched]);
  }
  code_.add(reg::to, reg::output_step);
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

void DepthwiseEmitter::emit_epilogue() {
  if (epilogue_) {
    epilogue_->leave();
    code_.mov(Xbyak::util::rsp, code_.qword[Xbyak::util::rsp]);
  }
  code_.vzeroupper();
  code_.pop_all(saved_registers);
  code_.ret();
}

}  // namespace

bool fits(const DepthwiseForm& form, const Target& target) {
  constexpr int most_rows = 16;
  constexpr int most_input_rows = 64;  // beyond which code gets long
  constexpr size_t most_blocks = 12;   // likewise
  const bool is_sane = form.rows >= 1 && form.rows <= most_rows && form.row_stride <= most_rows &&
                       form.dwords >= 1 && form.dwords <= DepthwiseColumns::most_dwords &&
                       form.blocks.size() <= most_blocks;
  return is_sane && target.has_avx512() && DepthwiseRegisters(form, target).fit() &&
         std::ranges::all_of(form.blocks, [&](const DepthwiseBlock& block) {
           return form.input_rows(block) <= most_input_rows;
         });
}

int weight_dwords(const DepthwiseForm& form, const Target& target) {
  const int products = form.rows * form.dwords * dwords_of_product(target);
  return products + (has_words(target) ? 0 : form.dwords);
}

namespace {

/// Whether registers and masks are enough, and the code of all stores is not too long.
bool may_apply(const TileEpilogue& epilogue, const DepthwiseForm& form, const Target& target) {
  size_t stores = 0;
  for (const DepthwiseBlock& block : form.blocks) stores += static_cast<size_t>(block.outputs);
  return !form.adds && form.dwords <= most_epilogue_dwords &&
         stores * epilogue.program.code.size() <= most_epilogue_operations &&
         DepthwiseRegisters(form, target, spare_vectors(&epilogue)).fit();
}

Error epilogue_refused() {
  return {ErrorCode::unsupported, "an epilogue that depthwise kernels have no room for"};
}

}  // namespace

Result<MachineCode> emit_depthwise_kernel(const DepthwiseForm& form, const Target& target,
                                          const TileEpilogue* epilogue) {
  if (epilogue != nullptr && !may_apply(*epilogue, form, target)) return epilogue_refused();
  bool fits_frame = true;
  Result<MachineCode> code =
      assemble(fmt::format("tier {}", name_of(target.tier)), [&](std::span<uint8_t> buffer) {
        DepthwiseEmitter emitter(form, target, epilogue, buffer);
        MachineCode emitted = emitter.emit();
        fits_frame = emitter.fits_frame();
        return emitted;
      });
  if (!code.ok() || epilogue == nullptr) return code;
  if (!fits_frame || code->bytes.size() > most_bytes_with_epilogue) return epilogue_refused();
  return code;
}

}  // namespace castor::jit
