// SPDX-License-Identifier: Apache-2.0
// The code of depthwise kernels in NCHW: lanes are output pixels.
#include <algorithm>
#include <array>

#include "jit/conv/sliding/sliding_emitter.hpp"

namespace castor::jit {

using namespace sliding;

namespace {

/// Registers with one meaning throughout the code.
namespace reg {
const Reg64 start(Operand::R10);         ///< of the channel, as the weights
const Reg64 input(Operand::RCX);         ///< of the channel
const Reg64 output(Operand::R8);         ///< of the channel
const Reg64 range(Operand::RBP);         ///< a DepthwiseRange; elsewhere with a frame pointer
const Reg64 columns(Operand::R11);       ///< ColumnPositions
const Reg64 columns_left(Operand::R12);  ///< of the range
const Reg64 positions(Operand::R13);     ///< of the columns, still to come
const Reg64 from(Operand::RSI);          ///< the next row at the column position
const Reg64 to(Operand::RDX);            ///< the next output
const Reg64 row_step(Operand::R14);      ///< without a frame pointer
const Reg64 output_step(Operand::R15);
const Reg64 scratch(Operand::RBX);
const Reg64 prefetched(Operand::RAX);  ///< not with an epilogue
}  // namespace reg

const std::array saved_registers = {reg::range,    reg::columns_left, reg::positions,
                                    reg::row_step, reg::output_step,  reg::scratch};

/// Masks: of the lanes that are stored, of the bytes of a border row's source, and of a shuffle's.
const Opmask stored(1);  // as an epilogue has it
const Opmask border(2);
const Opmask in_row(3);
Opmask taken(int k_group) { return Opmask(7 - k_group); }

/// An epilogue may overwrite masks but for those of two shuffles.
constexpr int max_epilogue_k_groups = 2;
constexpr uint32_t epilogue_taken_masks = 0xc0;

/// Vectors that a kernel leaves to an epilogue; null: none.
int spare_vectors(const TileEpilogue* epilogue) {
  return vectors_for(epilogue) + (epilogue == nullptr ? 0 : vectors_of_packs(*epilogue));
}

/// The vector registers of one kernel, given out in the order of the members.
class NchwRegisters : public VectorPool {
 public:
  /// `spare`: registers that are left for an epilogue at least.
  NchwRegisters(const DepthwiseSpec& spec, const Target& target, int spare = 0)
      : VectorPool(target, spare), spec_(spec) {
    padding = take();
    source = take();
    taps = take();
    if (spec.flips_input) flip = take();
    if (!has_vbmi(target)) moved = take();
    if (spec.has_pairs()) {
      odd_taps = take();
      even_bytes = take();
    }
    if (spec.has_pairs() || spec.signed_input) product = take();
    if (spec.subtracts_window_sums) window_sum_ = take();
    first_shuffle_ = take(spec.k_groups * (has_vbmi(target) ? 1 : 2));
    first_sum_ = take(spec.sum_rows());
    keeps_start = room() >= 1;
    if (keeps_start) start = take();
    keep(read_panel_size(spec));
  }

  Xmm padding, source, taps, flip, moved, odd_taps, even_bytes, product, start;
  bool keeps_start = false;

  Xmm shuffle(int k_group) const { return vector(first_shuffle_.getIdx() + k_group); }
  Xmm pieces(int k_group) const { return shuffle(spec_.k_groups + k_group); }
  /// The output row with that number has it; they take turns.
  Xmm sum(int row, int) const { return vector(first_sum_.getIdx() + row % spec_.sum_rows()); }
  Xmm window_sum(int) const { return window_sum_; }

 private:
  const DepthwiseSpec& spec_;
  Xmm first_shuffle_, first_sum_, window_sum_;
};

/// The gather: the k groups of an input row at a column position.
class NchwGather : public SlidingEmitter<DepthwiseSpec, NchwRegisters> {
 protected:
  using SlidingEmitter::SlidingEmitter;
  ~NchwGather() = default;

  /// With a frame pointer the range is where row steps are otherwise, which the arguments have.
  const Reg64& range_register() const {
    return code_.has_frame_pointer() ? reg::row_step : reg::range;
  }
  Xbyak::Address row_step_argument() {
    return argument(offsetof(DepthwiseArguments, input_row_step));
  }
  Xbyak::Address range_field(size_t offset) { return code_.qword[range_register() + offset]; }
  Xbyak::Address columns_field(size_t offset) { return code_.ptr[reg::columns + offset]; }

  /// The shuffles of a column position.
  void emit_shuffles() {
    const Section gather = code_.section(CodeSection::gather);
    for (int k_group = 0; k_group < spec_.k_groups; ++k_group) {
      const auto at = static_cast<size_t>(k_group);
      code_.kmovq(taken(k_group), columns_field(offsetof(ColumnPositions, taken) + 8 * at));
      code_.vmovups(vectors_.shuffle(k_group),
                    columns_field(offsetof(ColumnPositions, shuffle) + 64 * at));
      if (has_vbmi(target_)) continue;
      code_.vmovups(vectors_.pieces(k_group),
                    columns_field(offsetof(ColumnPositions, pieces) + 64 * at));
    }
  }

  void emit_row(int row) override {
    const bool outside = spec_.is_outside(range_, row);
    const Section gather = code_.section(CodeSection::gather);
    if (outside) emit_split(vectors_.taps, vectors_.padding);
    for (int k_group = 0; k_group < spec_.k_groups; ++k_group) {
      if (!outside) {
        if (k_group == 0) emit_load(row);
        emit_shuffle(k_group);
      }
      const bool takes_padding = outside && !spec_.has_pairs();
      emit_products(row, takes_padding ? vectors_.padding : vectors_.taps, k_group);
    }
  }

 private:
  /// Rows of a range that are masked, from above and from below, are numbered together; -1: the row
  /// is not masked.
  int border_row(int row) const {
    const int below = row - (spec_.input_rows(range_) - range_.below - range_.border_below);
    if (row < range_.above + range_.border_above) return row - range_.above;
    return below < 0 ? -1 : below + range_.border_above;
  }

  void emit_load(int row) {
    const Section load = code_.section(CodeSection::load_pixels);
    const auto sized = [&](const Xmm& vector) {
      return vector_register(vector.getIdx(), 8 * spec_.source_bytes);
    };
    const Xmm source = sized(vectors_.source);
    const Xmm padding = sized(vectors_.padding);
    const Xmm flip = spec_.flips_input ? sized(vectors_.flip) : padding;
    const Xbyak::Address address = code_.ptr[reg::from];
    if (spec_.prefetch_bytes > 0) code_.prefetcht0(code_.ptr[reg::from + spec_.prefetch_bytes]);
    if (border_row(row) < 0) {
      if (spec_.flips_input) return code_.vpxord(source, flip, address);
      return code_.vmovups(source, address);
    }
    emit_border_mask(border_row(row));
    if (!spec_.flips_input) {
      code_.vmovdqa64(source, padding);
      return code_.vmovdqu8(source | border, address);
    }
    code_.vpxord(source, padding, flip);
    code_.vmovdqu8(source | border, address);
    code_.vpxord(source, source, flip);
  }

  /// The bytes of the source that are in the image.
  void emit_border_mask(int row) {
    code_.kmovq(border, columns_field(offsetof(ColumnPositions, loaded)));
    if (!range_.masks_rows) return;
    code_.mov(reg::scratch, argument(offsetof(DepthwiseArguments, rows_loaded)));
    code_.add(reg::scratch, range_field(offsetof(DepthwiseRange, rows_loaded)));
    code_.kmovq(in_row, code_.ptr[reg::scratch + 8 * row]);
    code_.kandq(border, border, in_row);
  }

  /// The four taps of each lane's pixel; those outside the row are padding.
  void emit_shuffle(int k_group) {
    const Zmm taps(vectors_.taps.getIdx());
    if (has_vbmi(target_)) {
      code_.vmovdqa64(taps, vectors_.padding);
      code_.vpermb(taps | taken(k_group), vectors_.shuffle(k_group), vectors_.source);
    } else {
      const Zmm moved(vectors_.moved.getIdx());
      code_.vpermd(moved, Zmm(vectors_.pieces(k_group).getIdx()), vectors_.source);
      code_.vmovdqa64(taps, vectors_.padding);
      code_.vpshufb(taps | taken(k_group), moved, vectors_.shuffle(k_group));
    }
    emit_split(taps, taps);
  }
};

/// Emits one kernel: loops over channels, row ranges, entries of column positions, and positions.
class NchwEmitter final : public NchwGather {
 public:
  NchwEmitter(const DepthwiseSpec& spec, const Target& target, const TileEpilogue* epilogue,
              const CodeBuffer& buffer)
      : NchwGather(spec, target, spare_vectors(epilogue), buffer) {
    if (epilogue == nullptr) return;
    epilogue_ = std::make_unique<EpilogueEmitter>(
        code_, target, *epilogue,
        EpilogueUse{.frame = stack_bytes,
                    .taken = {vectors_.taken(), epilogue_taken_masks},
                    .order = EpilogueOrder::channels,
                    .element = reg::to,
                    .position = reg::output_step});
  }

  MachineCode emit() {
    emit_entry();
    emit_channels();
    emit_exit(saved_registers, 0);
    return code_.finish();
  }

 private:
  void emit_channels() {
    const Section channels = code_.section(CodeSection::channel_loop);
    Xbyak::Label next_channel;
    code_.L(next_channel);
    emit_channel();
    emit_each(code_, CodeSection::range_loop, range_register(), sizeof(DepthwiseRange),
              argument(offsetof(DepthwiseArguments, ranges_end)), [&] { emit_range(); });
    emit_channel_step();
    code_.jb(next_channel, Xbyak::CodeGenerator::T_NEAR);
  }

  void emit_entry() {
    const Section entry = code_.section(CodeSection::entry);
    code_.push_all(saved_registers);
    if (epilogue_) emit_enter_epilogue(reg::scratch, 0, offsetof(DepthwiseArguments, epilogue));
    code_.mov(reg::input, argument(offsetof(DepthwiseArguments, input)));
    code_.mov(reg::output, argument(offsetof(DepthwiseArguments, output)));
    code_.mov(weights, argument(offsetof(DepthwiseArguments, weights)));
    code_.mov(reg::start, argument(offsetof(DepthwiseArguments, start)));
    if (!code_.has_frame_pointer()) code_.mov(reg::row_step, row_step_argument());
    code_.mov(reg::output_step, argument(offsetof(DepthwiseArguments, output_row_step)));
    emit_constants();
    if (!epilogue_) {
      code_.mov(reg::prefetched, argument(offsetof(DepthwiseArguments, prefetched)));
    }
  }

  void emit_constants() {
    const Section constants = code_.section(CodeSection::constants);
    code_.vpbroadcastq(vectors_.padding, argument(offsetof(DepthwiseArguments, padding)));
    emit_flip_constant();
    if (spec_.flips_input) emit_xor(vectors_.padding, vectors_.flip);
    emit_split_constant();
  }

  void emit_channel() {
    if (epilogue_) epilogue_->emit_begin_row();
    if (vectors_.keeps_start) {
      const Section first = code_.section(CodeSection::first_values);
      code_.vpbroadcastd(vectors_.start, code_.ptr[reg::start]);
    }
    emit_kept();
    code_.mov(range_register(), argument(offsetof(DepthwiseArguments, ranges)));
  }

  void emit_range() {
    code_.mov(reg::columns, argument(offsetof(DepthwiseArguments, columns)));
    code_.add(reg::columns, range_field(offsetof(DepthwiseRange, columns)));
    code_.mov(reg::columns_left, argument(offsetof(DepthwiseArguments, column_count)));
    emit_any_range(range_field(offsetof(DepthwiseRange, range)), [&] {
      Xbyak::Label next;
      code_.L(next);
      emit_positions();
      code_.add(reg::columns, sizeof(ColumnPositions));
      code_.dec(reg::columns_left);
      code_.jnz(next, Xbyak::CodeGenerator::T_NEAR);
    });
  }

  void emit_positions() {
    const Section columns = code_.section(CodeSection::column_loop);
    code_.mov(reg::positions, columns_field(offsetof(ColumnPositions, count)));
    code_.mov(reg::from, columns_field(offsetof(ColumnPositions, input)));
    code_.add(reg::from, range_field(offsetof(DepthwiseRange, input)));
    code_.add(reg::from, reg::input);
    code_.mov(reg::to, columns_field(offsetof(ColumnPositions, output)));
    code_.add(reg::to, range_field(offsetof(DepthwiseRange, output)));
    code_.add(reg::to, reg::output);
    code_.kmovq(stored, columns_field(offsetof(ColumnPositions, stored)));
    emit_shuffles();
    Xbyak::Label next;
    code_.align_to(32);
    code_.L(next);
    const uint32_t begin = code_.position();
    code_.has_frame_pointer() ? emit_rows(reg::from, row_step_argument())
                              : emit_rows(reg::from, reg::row_step);
    if (epilogue_) epilogue_->emit_flush();
    code_.add(reg::from, range_field(offsetof(DepthwiseRange, input_column_step)));
    code_.add(reg::to, range_field(offsetof(DepthwiseRange, output_column_step)));
    code_.dec(reg::positions);
    code_.jnz(next, Xbyak::CodeGenerator::T_NEAR);
    note_range(begin);
  }

  void emit_first_sum(const Xmm& sum, int) override {
    if (!vectors_.keeps_start) code_.vpbroadcastd(sum, code_.ptr[reg::start]);
    const Xmm start = vectors_.keeps_start ? vectors_.start : sum;
    if (spec_.subtracts_window_sums) return code_.vpaddd(sum, start, vectors_.window_sum(0));
    if (vectors_.keeps_start) code_.vmovdqa64(sum, start);
  }

  void emit_stores(int output) override {
    const Section stores = code_.section(CodeSection::stores);
    const Xmm sum = vectors_.sum(output, 0);
    if (spec_.subtracts_window_sums) {
      const Section compensation = code_.section(CodeSection::compensation);
      code_.vpsubd(sum, sum, vectors_.window_sum(0));
    }
    if (epilogue_) {
      epilogue_->emit_apply(sum);
      epilogue_->emit_prefetch(argument(offsetof(DepthwiseArguments, prefetched)), reg::scratch);
    } else {
      if (spec_.adds) code_.vpaddd(sum | stored, sum, code_.ptr[reg::to]);
      code_.vmovdqu32(code_.ptr[reg::to] | stored, sum);
      const Section prefetch = code_.section(CodeSection::prefetch);
      code_.prefetchw(code_.ptr[reg::to + reg::prefetched]);
    }
    const Section next = code_.section(CodeSection::next_row);
    code_.add(reg::to, reg::output_step);
  }

  /// To the next channel; sets the flags that the loop ends by.
  void emit_channel_step() {
    if (epilogue_) epilogue_->emit_next_row();
    code_.add(reg::input, argument(offsetof(DepthwiseArguments, input_channel_step)));
    code_.add(reg::output, argument(offsetof(DepthwiseArguments, output_channel_step)));
    code_.add(reg::start, 4);
    code_.add(weights, 4 * panel_size(spec_));
    code_.cmp(weights, argument(offsetof(DepthwiseArguments, weights_end)));
  }
};

}  // namespace

bool fits(const DepthwiseSpec& spec, const Target& target) {
  return has_code_for(spec, target) && target.has_avx512() && spec.k_groups >= 1 &&
         spec.k_groups <= ColumnPositions::max_k_groups && NchwRegisters(spec, target).fit();
}

bool may_apply(const TileEpilogue& epilogue, const DepthwiseSpec& spec, const Target& target) {
  return !epilogue.rows_of_channels && !spec.adds && spec.k_groups <= max_epilogue_k_groups &&
         NchwRegisters(spec, target, spare_vectors(&epilogue)).fit();
}

Result<MachineCode> emit_kernel(const DepthwiseSpec& spec, const Target& target,
                                const TileEpilogue* epilogue, const EmitOptions& options) {
  return assemble_with_epilogue<NchwEmitter>(spec, target, epilogue, options);
}

}  // namespace castor::jit
