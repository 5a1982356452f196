// SPDX-License-Identifier: Apache-2.0
// The code of depthwise kernels in NCHW: output pixels in the lanes.
#include <algorithm>
#include <array>
#include <memory>

#include "jit/conv/epilogue/epilogue_emitter.hpp"
#include "jit/conv/sliding/sliding_emitter.hpp"

namespace castor::jit {

using namespace sliding;

namespace {

/// Registers with one meaning throughout the code.
namespace reg {
const Reg64 arguments(Operand::RDI);
const Reg64 start(Operand::R10);      ///< of the channel, as the weights
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
constexpr int max_epilogue_dwords = 2;
constexpr uint32_t epilogue_taken_masks = 0xc0;
/// Of the stack, below the epilogue's frame: where the caller's stack is.
constexpr int stack_bytes = 64;

/// The number that makes 1 of an odd one, modulo 2^32. Each step doubles the bits that are right.
constexpr uint32_t inverse_of_odd(uint32_t odd) {
  uint32_t inverse = odd;
  for (int bits = 3; bits < 32; bits *= 2) inverse *= 2 - odd * inverse;
  return inverse;
}

/// Vectors that a kernel leaves to an epilogue; null: none.
int spare_vectors(const TileEpilogue* epilogue) {
  return vectors_for(epilogue) + (epilogue == nullptr ? 0 : vectors_of_packs(*epilogue));
}

/// How far ahead lines of the input are asked for, where few sums are made of a row: bytes.
constexpr int prefetched_input = 4096;

/// The vector registers of one kernel, given out in the order of the members.
class NchwRegisters : public VectorPool {
 public:
  /// `spare`: registers that are left for an epilogue at least.
  NchwRegisters(const DepthwiseForm& form, const Target& target, int spare = 0)
      : VectorPool(target, spare), form_(form) {
    padding = take();
    source = take();
    taps = take();
    if (form.flips_input) flip = take();
    if (!has_vbmi(target)) moved = take();
    if (form.has_words()) {
      odd_taps = take();
      even_bytes = take();
      product = take();
    }
    if (form.sums_windows()) {
      window_sum_ = take();
      row_sum_ = take();
      row_start = take();
    }
    first_shuffle_ = take(form.dwords * (has_vbmi(target) ? 1 : 2));
    first_sum_ = take(form.sum_rows());
    keeps_start = !form.starts_by_row() && room() >= 1;
    if (keeps_start) start = take();
    weights = form.rows * form.dwords * form.vectors_of_weight() + form.summed_dwords();
    keeps_weights = room() >= weights;
    if (keeps_weights) first_weight_ = take(weights);
    if (!keeps_weights && form.signed_input) product = take();
  }

  bool fit() const { return room() >= 0; }

  Xmm padding, source, taps, flip, moved, odd_taps, even_bytes, product, start, row_start;
  bool keeps_start = false;
  bool keeps_weights = false;  ///< else they are read each time
  int weights = 0;             ///< that the code multiplies by

  Xmm shuffle(int dword) const { return vector(first_shuffle_.getIdx() + dword); }
  Xmm pieces(int dword) const { return vector(first_shuffle_.getIdx() + form_.dwords + dword); }
  /// Of the output row with that number; they take turns.
  Xmm sum(int row, int) const { return vector(first_sum_.getIdx() + row % form_.sum_rows()); }
  Xmm window_sum(int) const { return window_sum_; }
  Xmm row_sum(int) const { return row_sum_; }
  bool keeps(int) const { return keeps_weights; }
  Xmm kept(int index) const { return vector(first_weight_.getIdx() + index); }

 private:
  const DepthwiseForm& form_;
  Xmm first_shuffle_, first_sum_, first_weight_, window_sum_, row_sum_;
};

/// Emits one kernel. The methods are in the order of the code that they emit.
class NchwEmitter final : SlidingEmitter<DepthwiseForm, NchwRegisters> {
 public:
  NchwEmitter(const DepthwiseForm& form, const Target& target, const TileEpilogue* epilogue,
              std::span<uint8_t> buffer)
      : SlidingEmitter(form, target, spare_vectors(epilogue), buffer) {
    if (epilogue == nullptr) return;
    epilogue_ = std::make_unique<EpilogueEmitter>(
        code_, target, *epilogue,
        EpilogueUse{.frame = stack_bytes,
                    .taken = {vectors_.taken(), epilogue_taken_masks},
                    .addresses = AddressesIn::rows,
                    .element = reg::to,
                    .position = reg::output_step});
  }

  bool fits_frame() const { return !epilogue_ || epilogue_->fits_frame(); }

  MachineCode emit() {
    emit_entry();
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
    emit_exit();
    return code_.finish();
  }

 private:
  /// Where an input row is.
  enum class Place : uint8_t { inside, guarded, outside };

  void emit_entry();
  void enter_epilogue();
  void emit_channel();
  void emit_row_start();
  void emit_blocks();
  void emit_counted_blocks();
  void emit_shuffles();
  void emit_positions();
  void emit_row(int row) override;
  void load_source(int dword, int row);
  void set_guard(int source, int row);
  void shuffle(int dword);
  void emit_first_sum(const Xmm& sum, int) override;
  void emit_stores(int output) override;
  void emit_channel_step();
  void emit_exit();

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
  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }
  Xbyak::Address of_blocks(size_t offset) { return code_.qword[reg::bands + offset]; }
  Xbyak::Address of_columns(size_t offset) { return code_.ptr[reg::columns + offset]; }

  std::unique_ptr<EpilogueEmitter> epilogue_;  ///< null where there is none
};

void NchwEmitter::emit_entry() {
  code_.push_all(saved_registers);
  if (epilogue_) enter_epilogue();
  code_.mov(reg::input, argument(offsetof(DepthwiseArguments, input)));
  code_.mov(reg::output, argument(offsetof(DepthwiseArguments, output)));
  code_.mov(weights, argument(offsetof(DepthwiseArguments, weights)));
  code_.mov(reg::start, argument(offsetof(DepthwiseArguments, start)));
  code_.mov(reg::row_step, argument(offsetof(DepthwiseArguments, input_row_step)));
  code_.mov(reg::output_step, argument(offsetof(DepthwiseArguments, output_row_step)));
  code_.vpbroadcastq(vectors_.padding, argument(offsetof(DepthwiseArguments, padding)));
  emit_flip_constant();
  if (form_.flips_input) code_.vpxord(vectors_.padding, vectors_.padding, vectors_.flip);
  emit_split_constant();
}

void NchwEmitter::enter_epilogue() {
  enter_frame(reg::scratch, stack_bytes + EpilogueEmitter::frame_bytes);
  epilogue_->enter();
  epilogue_->begin(argument(offsetof(DepthwiseArguments, epilogue)));
}

void NchwEmitter::emit_channel() {
  if (epilogue_) epilogue_->begin_row();
  if (vectors_.keeps_start) code_.vpbroadcastd(vectors_.start, code_.ptr[reg::start]);
  if (form_.sums_windows()) emit_row_start();
  if (vectors_.keeps_weights) {
    for (int i = 0; i < vectors_.weights; ++i) {
      code_.vpbroadcastd(vectors_.kept(i), code_.ptr[weights + 4 * i]);
    }
  }
  code_.mov(reg::bands, argument(offsetof(DepthwiseArguments, blocks)));
}

/// What each row adds to the window sum at first.
void NchwEmitter::emit_row_start() {
  const Xmm& row_start = vectors_.row_start;
  if (!form_.starts_by_row()) return code_.vpxord(row_start, row_start, row_start);
  const uint32_t by_row = 0 - inverse_of_odd(static_cast<uint32_t>(form_.rows));
  code_.vpbroadcastd(row_start, code_.constant_of(by_row));
  code_.vpmulld(row_start, row_start, code_.ptr_b[reg::start]);
}

/// One entry of blocks, by the code that it names.
void NchwEmitter::emit_blocks() {
  code_.add(reg::input, of_blocks(offsetof(DepthwiseBlocks, input)));
  code_.add(reg::output, of_blocks(offsetof(DepthwiseBlocks, output)));
  code_.mov(reg::blocks, of_blocks(offsetof(DepthwiseBlocks, count)));
  if (!epilogue_) code_.mov(reg::prefetched, of_blocks(offsetof(DepthwiseBlocks, prefetched)));
  emit_any_block(of_blocks(offsetof(DepthwiseBlocks, block)), [&] { emit_counted_blocks(); });
}

void NchwEmitter::emit_counted_blocks() {
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

void NchwEmitter::emit_shuffles() {
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

void NchwEmitter::emit_positions() {
  Xbyak::Label next;
  code_.align_to(32);
  code_.L(next);
  emit_rows(reg::from, reg::row_step);
  if (epilogue_) epilogue_->flush();
  code_.add(reg::from, of_blocks(offsetof(DepthwiseBlocks, input_column_step)));
  code_.add(reg::to, of_blocks(offsetof(DepthwiseBlocks, output_column_step)));
  code_.dec(reg::positions);
  code_.jnz(next, Xbyak::CodeGenerator::T_NEAR);
}

/// One input row: into the sums of all outputs that take it.
void NchwEmitter::emit_row(int row) {
  const bool outside = place_of(row) == Place::outside;
  if (form_.sums_windows()) code_.vmovdqa64(vectors_.row_sum(0), vectors_.row_start);
  if (outside) emit_split(vectors_.taps, vectors_.padding);
  for (int dword = 0; dword < form_.dwords; ++dword) {
    if (!outside) {
      if (dword < sources()) load_source(dword, row);
      shuffle(dword);
    }
    const bool takes_padding = outside && !form_.has_words();
    emit_products(row, takes_padding ? vectors_.padding : vectors_.taps, dword);
  }
  if (form_.sums_windows()) {
    code_.vpaddd(vectors_.window_sum(0), vectors_.window_sum(0), vectors_.row_sum(0));
  }
}

void NchwEmitter::emit_first_sum(const Xmm& sum, int) {
  const Xmm window_sum = vectors_.window_sum(0);
  if (form_.starts_by_row()) return code_.vmovdqa64(sum, window_sum);
  if (!vectors_.keeps_start) code_.vpbroadcastd(sum, code_.ptr[reg::start]);
  const Xmm start = vectors_.keeps_start ? vectors_.start : sum;
  if (form_.sums_windows()) {
    code_.vpaddd(sum, start, window_sum);
  } else if (vectors_.keeps_start) {
    code_.vmovdqa64(sum, start);
  }
}

void NchwEmitter::load_source(int dword, int row) {
  const auto sized = [&](const Xmm& vector) {
    return vector_register(vector.getIdx(), 8 * form_.source_bytes);
  };
  const Xmm source = sized(vectors_.source);
  const Xmm padding = sized(vectors_.padding);
  const Xmm flip = form_.flips_input ? sized(vectors_.flip) : padding;
  const Xbyak::Address address = code_.ptr[reg::from + dword * form_.dword_step];
  if (form_.row_stride > 1) code_.prefetcht0(code_.ptr[reg::from + prefetched_input]);
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

/// The bytes of a source that are in the image.
void NchwEmitter::set_guard(int source, int row) {
  const size_t at = offsetof(DepthwiseColumns, loaded) + 8 * static_cast<size_t>(source);
  code_.kmovq(guard, of_columns(at));
  if (!block_.masks_rows) return;
  code_.mov(reg::scratch, of_blocks(offsetof(DepthwiseBlocks, rows_loaded)));
  code_.kmovq(in_row, code_.ptr[reg::scratch + 8 * guarded_index(row)]);
  code_.kandq(guard, guard, in_row);
}

/// The four taps of each lane's pixel; those outside the row are padding.
void NchwEmitter::shuffle(int dword) {
  const Zmm taps(vectors_.taps.getIdx());
  if (has_vbmi(target_)) {
    code_.vmovdqa64(taps, vectors_.padding);
    code_.vpermb(taps | taken(dword), vectors_.shuffle(dword), vectors_.source);
  } else {
    const Zmm moved(vectors_.moved.getIdx());
    code_.vpermd(moved, Zmm(vectors_.pieces(dword).getIdx()), vectors_.source);
    code_.vmovdqa64(taps, vectors_.padding);
    code_.vpshufb(taps | taken(dword), moved, vectors_.shuffle(dword));
  }
  emit_split(taps, taps);
}

void NchwEmitter::emit_stores(int output) {
  const Xmm sum = vectors_.sum(output, 0);
  if (form_.sums_windows()) code_.vpsubd(sum, sum, vectors_.window_sum(0));
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
void NchwEmitter::emit_channel_step() {
  if (epilogue_) epilogue_->next_row(argument(offsetof(DepthwiseArguments, epilogue)));
  code_.add(reg::input, argument(offsetof(DepthwiseArguments, input_channel_step)));
  code_.add(reg::output, argument(offsetof(DepthwiseArguments, output_channel_step)));
  code_.add(reg::start, 4);
  code_.add(weights, 4 * form_.weight_dwords());
  code_.cmp(weights, argument(offsetof(DepthwiseArguments, weights_end)));
}

void NchwEmitter::emit_exit() {
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
  constexpr size_t max_blocks = 12;  // beyond which code gets long
  const bool is_sane = has_short_code(form, max_blocks) && form.dwords >= 1 &&
                       form.dwords <= DepthwiseColumns::max_dwords;
  return is_sane && target.has_avx512() && has_engine(target, form.engine) &&
         NchwRegisters(form, target).fit();
}

namespace {

/// With an epilogue straight-line code gets long: lane operations of all stores, and bytes in all.
constexpr size_t max_epilogue_operations = 1500;
constexpr size_t max_bytes_with_epilogue = size_t{16} << 10;

/// About as many bytes as the code of an output takes: a refusal that is foreseen costs nothing.
size_t bytes_of_output(const TileEpilogue& epilogue, const DepthwiseForm& form) {
  constexpr size_t instruction = 6;
  const size_t taps = static_cast<size_t>(form.dwords) * 3;  // loaded and shuffled
  const int vectors = form.vectors_of_weight();              // of words, with two instructions each
  const auto products = static_cast<size_t>(form.rows * form.dwords * vectors * vectors);
  constexpr size_t sum = 7;  // begun, stored, steps
  return instruction * (taps + products + sum + epilogue.program.code.size());
}

}  // namespace

bool may_apply(const TileEpilogue& epilogue, const DepthwiseForm& form, const Target& target) {
  size_t stores = 0;
  for (const SlidingBlock& block : form.blocks) stores += static_cast<size_t>(block.outputs);
  return !form.adds && form.dwords <= max_epilogue_dwords &&
         stores * epilogue.program.code.size() <= max_epilogue_operations &&
         stores * bytes_of_output(epilogue, form) <= max_bytes_with_epilogue &&
         NchwRegisters(form, target, spare_vectors(&epilogue)).fit();
}

Result<MachineCode> emit_kernel(const DepthwiseForm& form, const Target& target,
                                const TileEpilogue* epilogue) {
  if (epilogue != nullptr && !may_apply(*epilogue, form, target)) return epilogue_refused();
  Result<MachineCode> code = assemble_with_epilogue<NchwEmitter>(form, target, epilogue);
  if (!code.ok() || epilogue == nullptr) return code;
  if (code->bytes.size() > max_bytes_with_epilogue) return epilogue_refused();
  return code;
}

}  // namespace castor::jit
