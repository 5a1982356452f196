// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/depthwise_nhwc_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "jit/conv/depthwise_nhwc_registers.hpp"
#include "jit/conv/pixel_epilogue.hpp"
#include "jit/emit/assembler.hpp"

namespace castor::jit {

namespace {

using Xbyak::Operand;
using Xbyak::Opmask;
using Xbyak::Reg64;
using Xbyak::Xmm;
using Xbyak::Zmm;

/// Registers with one meaning throughout the code.
namespace reg {
const Reg64 arguments(Operand::RDI);
const Reg64 from(Operand::RSI);  ///< the next row at the place
const Reg64 to(Operand::RDX);    ///< the next output row at the place
const Reg64 output_step(Operand::R8);
const Reg64 place(Operand::RBP);
const Reg64 weights(Operand::R9);  ///< of the channels
const Reg64 start(Operand::R10);   ///< of the channels
const Reg64 row_step(Operand::R15);
const Reg64 thrice_output_step(Operand::RCX);
const Reg64 prefetched(Operand::RBX);
const Reg64 stored_at(Operand::RAX);
// Only with an epilogue, which has RAX besides.
const Reg64 pixel(Operand::RCX);    ///< of the sums
const Reg64 channel(Operand::RBX);  ///< their first one
}  // namespace reg

/// One, three, five and seven times the step from a pixel to the next.
const std::array odd_steps = {Reg64(Operand::R11), Reg64(Operand::R12), Reg64(Operand::R13),
                              Reg64(Operand::R14)};
const std::array saved_registers = {reg::channel, reg::place,   odd_steps[1],
                                    odd_steps[2], odd_steps[3], reg::row_step};

/// Masks: of pixels, where there are enough for all of a place; else of the one at hand. An
/// epilogue leaves only one as it is, that of its lanes.
constexpr int most_pixel_masks = 6;
const Opmask pixel_at_hand(2);
const Opmask stored(7);
const Opmask epilogue_lanes(1);

/// Registers that an epilogue has at least, and one that encodes by tables or looks up.
constexpr int least_epilogue_vectors = 10;
constexpr int least_table_vectors = 16;
/// Of the stack, with an epilogue: where the caller's stack is; then the epilogue's frame. In its
/// routine there is a return address in front of all.
constexpr int stack_bytes = 64;
constexpr int return_bytes = 8;

int spare_vectors(const TileEpilogue* epilogue) {
  if (epilogue == nullptr) return 0;
  const bool by_tables = std::ranges::any_of(epilogue->program.code, [](const LaneInst& inst) {
    return looks_up(inst.narrowing) || encodes(inst.narrowing);
  });
  return by_tables ? least_table_vectors : least_epilogue_vectors;
}

/// Emits one kernel. The methods are in the order of the code that they emit.
class NhwcEmitter {
 public:
  NhwcEmitter(const DepthwiseNhwcForm& form, const Target& target, const TileEpilogue* epilogue,
              std::span<uint8_t> buffer)
      : form_(form),
        target_(target),
        vectors_(form, target, spare_vectors(epilogue)),
        code_(buffer) {
    if (epilogue == nullptr) return;
    epilogue_.emplace(code_, target, *epilogue, TakenRegisters{vectors_.taken(), 0},
                      stack_bytes + return_bytes, reg::pixel, reg::channel);
  }

  bool fits_frame() const { return !epilogue_ || epilogue_->fits_frame(); }

  MachineCode emit() {
    emit_prologue();
    Xbyak::Label done;
    for (size_t i = 0; i < form_.blocks.size(); ++i) {
      Xbyak::Label next;
      const bool is_last = i + 1 == form_.blocks.size();
      if (!is_last) {
        code_.cmp(argument(offsetof(DepthwiseNhwcArguments, block)), static_cast<uint32_t>(i));
        code_.jne(next, Xbyak::CodeGenerator::T_NEAR);
      }
      block_ = form_.blocks[i];
      emit_places();
      if (!is_last) code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
      code_.L(next);
    }
    code_.L(done);
    emit_epilogue();
    return code_.finish();
  }

 private:
  void emit_prologue();
  void enter_epilogue();
  void emit_constants();
  void emit_places();
  void emit_place_begin();
  void emit_masks();
  void emit_channels();
  void load_weights();
  void emit_block();
  void emit_row(int row);
  void begin_sums(int row);
  void load_quad(int quad);
  void load_pixel(int pixel);
  void load_inner_pixel(int pixel);
  void load_guarded_pixel(int pixel);
  void transpose();
  void prepare_taps(const Zmm& quad);
  void multiply(int row, const Zmm& taps, int quad);
  void multiply_add(const Zmm& sum, const Zmm& taps, int weight);
  void multiply_add_vector(const Zmm& sum, const Zmm& taps, int weight);
  void emit_stores(int row);
  void emit_store(const Zmm& sum, int output);
  void emit_store_by_epilogue(const Zmm& sum, int output);
  void emit_epilogue();

  bool keeps_masks() const { return !epilogue_ && form_.pixels() <= most_pixel_masks; }
  bool is_outside(int row) const {
    return row < block_.above || row >= form_.input_rows(block_) - block_.below;
  }
  /// The first output row that takes an input row, and the last one; none where that one is before
  /// it.
  int first_output(int row) const {
    const int behind = row - form_.rows;  // the last row of an output row that is done
    return behind < 0 ? 0 : behind / form_.row_stride + 1;
  }
  int last_output(int row) const { return std::min(row / form_.row_stride, block_.outputs - 1); }
  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }
  Xbyak::Address of_place(size_t offset) { return code_.ptr[reg::place + offset]; }
  Xbyak::Address weight_address(int index) { return code_.ptr[reg::weights + 64 * index]; }
  Xbyak::Address pixel_address(int pixel) {
    if (pixel == 0) return code_.ptr[reg::from];
    int times = 1;
    while (pixel % (2 * times) == 0) times *= 2;
    return code_.ptr[reg::from + odd_steps[static_cast<size_t>(pixel / times / 2)] * times];
  }
  Xbyak::Address output_address(int output) {
    if (output == 0) return code_.ptr[reg::to];
    if (output == 3) return code_.ptr[reg::to + reg::thrice_output_step];
    return code_.ptr[reg::to + reg::output_step * output];
  }
  /// Pixels of a quad.
  int pixels_of(int quad) const { return std::min(form_.pixels() - 4 * quad, 4); }
  static Xmm low(const Zmm& vector) { return Xmm(vector.getIdx()); }

  const DepthwiseNhwcForm& form_;
  const Target& target_;
  const NhwcRegisters vectors_;
  DepthwiseNhwcBlock block_;  ///< whose code is being emitted
  bool guards_ = false;       ///< whether that code leaves out pixels and outputs
  Assembler code_;
  std::optional<PixelEpilogueEmitter> epilogue_;
  Xbyak::Label channels_routine_;  ///< of the epilogue
  Xbyak::Label routine_;           ///< likewise, for a vector of sums
};

void NhwcEmitter::emit_prologue() {
  code_.push_all(saved_registers);
  if (epilogue_) enter_epilogue();
  const Reg64& step = odd_steps[0];
  code_.mov(step, argument(offsetof(DepthwiseNhwcArguments, pixel_step)));
  code_.lea(odd_steps[1], code_.ptr[step + step * 2]);
  code_.lea(odd_steps[2], code_.ptr[step + step * 4]);
  code_.lea(odd_steps[3], code_.ptr[odd_steps[2] + step * 2]);
  code_.mov(reg::row_step, argument(offsetof(DepthwiseNhwcArguments, row_step)));
  code_.mov(reg::output_step, argument(offsetof(DepthwiseNhwcArguments, output_step)));
  if (!epilogue_) {
    code_.mov(reg::prefetched, argument(offsetof(DepthwiseNhwcArguments, prefetched)));
    code_.lea(reg::thrice_output_step, code_.ptr[reg::output_step + reg::output_step * 2]);
  }
  code_.mov(reg::place, argument(offsetof(DepthwiseNhwcArguments, places)));
  emit_constants();
}

void NhwcEmitter::enter_epilogue() {
  const Reg64& stack = Xbyak::util::rsp;
  code_.mov(reg::pixel, stack);
  code_.sub(stack,
            stack_bytes + PixelEpilogueEmitter::operand_bytes + TileEpilogueEmitter::frame_bytes);
  code_.and_(stack, -64);
  code_.mov(code_.qword[stack], reg::pixel);
  code_.sub(stack, return_bytes);
  epilogue_->begin(argument(offsetof(DepthwiseNhwcArguments, epilogue)));
  code_.add(stack, return_bytes);
}

void NhwcEmitter::emit_constants() {
  code_.vpbroadcastq(vectors_.padding, argument(offsetof(DepthwiseNhwcArguments, padding)));
  if (form_.flips_input) {
    code_.vpbroadcastd(vectors_.flip, code_.constant_of(uint32_t{0x80808080}));
  }
  if (has_words(target_)) {
    code_.vpbroadcastd(vectors_.even_bytes, code_.constant_of(uint32_t{0x00ff00ff}));
  }
  std::array<uint8_t, 64> bytes;    // to channel c: byte c of each pixel
  std::array<uint32_t, 16> dwords;  // to four channels: their dword of each pixel
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i % 4 * 16 + i / 4);
  for (uint32_t i = 0; i < dwords.size(); ++i) dwords[i] = i % 4 * 4 + i / 4;
  if (has_vbmi(target_)) return code_.vmovdqa64(vectors_.order, code_.constant_of(bytes));
  code_.vmovdqa64(vectors_.order, code_.constant_of(dwords));
  std::array<uint8_t, 16> of_dwords;
  for (size_t i = 0; i < of_dwords.size(); ++i) {
    of_dwords[i] = static_cast<uint8_t>(i % 4 * 4 + i / 4);
  }
  code_.vbroadcasti32x4(vectors_.transposed, code_.constant_of(of_dwords));
}

/// All places of a block.
void NhwcEmitter::emit_places() {
  Xbyak::Label next;
  Xbyak::Label guarded;
  Xbyak::Label done;
  code_.L(next);
  emit_place_begin();
  if (!form_.is_partial) {
    code_.cmp(code_.qword[reg::place + offsetof(DepthwisePlace, is_inner)], 0);
    code_.je(guarded, Xbyak::CodeGenerator::T_NEAR);
    guards_ = false;
    emit_channels();
    code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  }
  code_.L(guarded);
  guards_ = true;
  emit_masks();
  emit_channels();
  code_.L(done);
  code_.add(reg::place, static_cast<int>(sizeof(DepthwisePlace)));
  code_.cmp(reg::place, argument(offsetof(DepthwiseNhwcArguments, places_end)));
  code_.jb(next, Xbyak::CodeGenerator::T_NEAR);
}

void NhwcEmitter::emit_place_begin() {
  code_.mov(reg::from, of_place(offsetof(DepthwisePlace, input)));
  code_.add(reg::from, argument(offsetof(DepthwiseNhwcArguments, input)));
  code_.mov(reg::to, of_place(offsetof(DepthwisePlace, output)));
  code_.imul(reg::to, argument(offsetof(DepthwiseNhwcArguments, output_pixel_step)));
  code_.add(reg::to, argument(offsetof(DepthwiseNhwcArguments, output)));
  code_.mov(reg::weights, argument(offsetof(DepthwiseNhwcArguments, weights)));
  code_.mov(reg::start, argument(offsetof(DepthwiseNhwcArguments, start)));
  if (!epilogue_) return;
  code_.xor_(reg::channel.cvt32(), reg::channel.cvt32());
  code_.kmovw(epilogue_lanes, argument(offsetof(DepthwiseNhwcArguments, lanes)));
}

void NhwcEmitter::emit_masks() {
  if (!keeps_masks()) return;
  for (int pixel = 0; pixel < form_.pixels(); ++pixel) {
    const size_t at = offsetof(DepthwisePlace, loaded) + 2 * static_cast<size_t>(pixel);
    code_.kmovw(Opmask(1 + pixel), of_place(at));
  }
}

/// All channels of a place, 16 at a time.
void NhwcEmitter::emit_channels() {
  Xbyak::Label next;
  Xbyak::Label adjust;
  Xbyak::Label done;
  code_.align_to(32);
  code_.L(next);
  if (epilogue_) code_.call(channels_routine_);
  load_weights();
  emit_block();
  code_.add(reg::from, argument(offsetof(DepthwiseNhwcArguments, input_vector_step)));
  code_.add(reg::to, argument(offsetof(DepthwiseNhwcArguments, output_vector_step)));
  code_.add(reg::weights, 64 * weight_vectors(form_, target_));
  code_.add(reg::start, 64);
  if (epilogue_) code_.add(reg::channel, DepthwiseNhwcForm::lanes);
  code_.cmp(reg::start, argument(offsetof(DepthwiseNhwcArguments, last_start)));
  code_.jb(next, Xbyak::CodeGenerator::T_NEAR);
  code_.ja(done, Xbyak::CodeGenerator::T_NEAR);
  code_.add(reg::from, argument(offsetof(DepthwiseNhwcArguments, input_last_step)));
  code_.add(reg::to, argument(offsetof(DepthwiseNhwcArguments, output_last_step)));
  if (epilogue_) {
    code_.add(reg::channel, argument(offsetof(DepthwiseNhwcArguments, input_last_step)));
    code_.kmovw(epilogue_lanes, argument(offsetof(DepthwiseNhwcArguments, last_lanes)));
  }
  code_.jmp(next, Xbyak::CodeGenerator::T_NEAR);
  code_.L(done);
}

void NhwcEmitter::load_weights() {
  for (int i = 0; i < vectors_.weights && vectors_.keeps(i); ++i) {
    code_.vmovups(vectors_.weight(i), weight_address(i));
  }
}

/// All rows of a place and of 16 channels.
void NhwcEmitter::emit_block() {
  if (form_.subtracts_window_sums) {
    for (int output = 0; output < form_.outputs; ++output) {
      const Zmm sum = vectors_.window_sum(output);
      code_.vpxord(sum, sum, sum);
    }
  }
  for (int row = 0; row < form_.input_rows(block_); ++row) {
    if (first_output(row) <= last_output(row)) emit_row(row);
    code_.add(reg::from, reg::row_step);
    const int behind = row - form_.rows + 1;
    if (behind >= 0 && behind % form_.row_stride == 0) emit_stores(behind / form_.row_stride);
  }
}

/// One input row: into the sums of all outputs that take it.
void NhwcEmitter::emit_row(int row) {
  begin_sums(row);
  if (is_outside(row)) prepare_taps(vectors_.padding);
  const bool as_it_is = !form_.flips_input && !has_words(target_);
  const Zmm& taps = is_outside(row) && as_it_is ? vectors_.padding : vectors_.quad;
  for (int quad = 0; quad < form_.quads(); ++quad) {
    if (!is_outside(row)) {
      load_quad(quad);
      prepare_taps(vectors_.quad);
    }
    multiply(row, taps, quad);
  }
}

/// Sums of the output row that this row is the first one of. What window sums have added up to is
/// added here and subtracted at the end, so that the rows between remain.
void NhwcEmitter::begin_sums(int row) {
  const int output_row = row / form_.row_stride;
  if (row % form_.row_stride != 0 || output_row >= block_.outputs) return;
  for (int output = 0; output < form_.outputs; ++output) {
    const Zmm sum = vectors_.sum(output_row, output);
    if (form_.subtracts_window_sums) {
      code_.vpaddd(sum, vectors_.window_sum(output), code_.ptr[reg::start]);
    } else {
      code_.vmovups(sum, code_.ptr[reg::start]);
    }
  }
}

/// Four pixels, 16 bytes each; then channel by channel.
void NhwcEmitter::load_quad(int quad) {
  if (guards_ && !form_.is_partial) code_.vmovdqa64(vectors_.quad, vectors_.padding);
  for (int i = 0; i < pixels_of(quad); ++i) load_pixel(4 * quad + i);
  transpose();
}

void NhwcEmitter::load_pixel(int pixel) {
  if (guards_) {
    load_guarded_pixel(pixel);
  } else {
    load_inner_pixel(pixel);
  }
}

void NhwcEmitter::load_inner_pixel(int pixel) {
  const Zmm& quad = vectors_.quad;
  const auto place = static_cast<uint8_t>(pixel % 4);
  if (place == 0) return code_.vmovdqu(low(quad), pixel_address(pixel));
  code_.vinserti32x4(quad, quad, pixel_address(pixel), place);
}

void NhwcEmitter::load_guarded_pixel(int pixel) {
  const Zmm& quad = vectors_.quad;
  const Opmask mask = keeps_masks() ? Opmask(1 + pixel) : pixel_at_hand;
  const size_t at = offsetof(DepthwisePlace, loaded) + 2 * static_cast<size_t>(pixel);
  if (!keeps_masks()) code_.kmovw(mask, of_place(at));
  if (!form_.is_partial) return code_.vbroadcasti32x4(quad | mask, pixel_address(pixel));
  code_.vmovdqa64(low(vectors_.pixel), low(vectors_.padding));
  code_.vmovdqu8(low(vectors_.pixel) | mask, pixel_address(pixel));
  const auto place = static_cast<uint8_t>(pixel % 4);
  if (place == 0) return code_.vmovdqa64(low(quad), low(vectors_.pixel));
  code_.vinserti32x4(quad, quad, low(vectors_.pixel), place);
}

/// Bytes of pixels to bytes of channels.
void NhwcEmitter::transpose() {
  const Zmm& quad = vectors_.quad;
  if (has_vbmi(target_)) return code_.vpermb(quad, vectors_.order, quad);
  code_.vpermd(quad, vectors_.order, quad);
  code_.vpshufb(quad, quad, vectors_.transposed);
}

/// What is multiplied: bytes flipped to unsigned ones; without VNNI words, the even bytes and the
/// odd ones.
void NhwcEmitter::prepare_taps(const Zmm& quad) {
  const Zmm& taps = vectors_.quad;
  if (form_.flips_input) code_.vpxord(taps, quad, vectors_.flip);
  if (!has_words(target_)) return;
  const Zmm& bytes = form_.flips_input ? taps : quad;
  code_.vpsrlw(vectors_.odd_taps, bytes, 8);
  code_.vpandd(taps, bytes, vectors_.even_bytes);
}

/// A quad of a row: into the sums of outputs, and into window sums.
void NhwcEmitter::multiply(int row, const Zmm& taps, int quad) {
  const int products = form_.products();
  for (int output = 0; output < form_.outputs; ++output) {
    if (!form_.takes(output, quad)) continue;
    const int product = form_.products_before(quad, output);
    if (form_.subtracts_window_sums) {
      multiply_add(vectors_.window_sum(output), taps, form_.rows * products + product);
    }
    for (int i = first_output(row); i <= last_output(row); ++i) {
      const int tap = row - i * form_.row_stride;
      multiply_add(vectors_.sum(i, output), taps, tap * products + product);
    }
  }
}

/// sum += taps times the weights of that number.
void NhwcEmitter::multiply_add(const Zmm& sum, const Zmm& taps, int weight) {
  if (!has_words(target_)) return multiply_add_vector(sum, taps, weight);
  multiply_add_vector(sum, taps, 2 * weight);
  multiply_add_vector(sum, vectors_.odd_taps, 2 * weight + 1);
}

void NhwcEmitter::multiply_add_vector(const Zmm& sum, const Zmm& taps, int weight) {
  const bool keeps = vectors_.keeps(weight);
  const Zmm& product = vectors_.product;
  if (form_.signed_input) {
    if (!keeps) code_.vmovups(product, weight_address(weight));
    code_.vpdpbusd(sum, keeps ? vectors_.weight(weight) : product, taps);
  } else if (keeps) {
    emit_dot_product(code_, target_, sum, taps, vectors_.weight(weight), product);
  } else if (has_words(target_)) {
    code_.vpmaddwd(product, taps, weight_address(weight));
    code_.vpaddd(sum, sum, product);
  } else {
    code_.vpdpbusd(sum, taps, weight_address(weight));
  }
}

/// An output row.
void NhwcEmitter::emit_stores(int row) {
  for (int output = 0; output < form_.outputs; ++output) {
    const Zmm sum = vectors_.sum(row, output);
    if (form_.subtracts_window_sums) code_.vpsubd(sum, sum, vectors_.window_sum(output));
    if (epilogue_) {
      emit_store_by_epilogue(sum, output);
    } else {
      emit_store(sum, output);
    }
  }
  code_.add(reg::to, argument(offsetof(DepthwiseNhwcArguments, output_row_step)));
}

void NhwcEmitter::emit_store(const Zmm& sum, int output) {
  if (output > 0) code_.lea(reg::stored_at, output_address(output));
  const Reg64& to = output > 0 ? reg::stored_at : reg::to;
  if (guards_) {
    const size_t at = offsetof(DepthwisePlace, stored) + 2 * static_cast<size_t>(output);
    code_.kmovw(stored, of_place(at));
    code_.vmovdqu32(code_.ptr[to] | stored, sum);
  } else {
    code_.vmovups(code_.ptr[to], sum);
  }
  code_.prefetchw(code_.ptr[to + reg::prefetched]);
}

/// By a call of the routine, where the output is there.
void NhwcEmitter::emit_store_by_epilogue(const Zmm& sum, int output) {
  Xbyak::Label done;
  if (guards_) {
    const size_t at = offsetof(DepthwisePlace, stored) + 2 * static_cast<size_t>(output);
    code_.cmp(code_.word[reg::place + at], 0);
    code_.je(done, Xbyak::CodeGenerator::T_NEAR);
  }
  code_.vmovdqa64(vectors_.quad, sum);
  code_.mov(reg::pixel, reg::to);
  for (int i = 0; i < output; ++i) code_.add(reg::pixel, reg::output_step);
  code_.call(routine_);
  code_.L(done);
}

void NhwcEmitter::emit_epilogue() {
  if (epilogue_) {
    code_.sub(Xbyak::util::rsp, return_bytes);
    epilogue_->leave();
    code_.mov(Xbyak::util::rsp, code_.qword[Xbyak::util::rsp + return_bytes]);
  }
  code_.vzeroupper();
  code_.pop_all(saved_registers);
  code_.ret();
  if (!epilogue_) return;
  code_.L(channels_routine_);
  epilogue_->emit_channels_routine();
  code_.align_to(32);
  code_.L(routine_);
  epilogue_->emit_routine(vectors_.quad);
}

}  // namespace

bool fits(const DepthwiseNhwcForm& form, const Target& target) {
  constexpr int most_rows = 16;
  constexpr int most_input_rows = 64;  // beyond which code gets long
  constexpr size_t most_blocks = 16;   // likewise
  const bool is_sane = form.rows >= 1 && form.rows <= most_rows && form.row_stride <= most_rows &&
                       form.outputs <= DepthwiseNhwcForm::most_outputs &&
                       form.pixels() <= DepthwiseNhwcForm::most_pixels &&
                       form.blocks.size() <= most_blocks;
  return is_sane && target.has_avx512() && NhwcRegisters(form, target, 0).fit &&
         std::ranges::all_of(form.blocks, [&](const DepthwiseNhwcBlock& block) {
           return form.input_rows(block) <= most_input_rows;
         });
}

int weight_vectors(const DepthwiseNhwcForm& form, const Target& target) {
  const int products = form.rows * form.products() * vectors_of_product(target);
  return products + (has_words(target) ? 0 : form.products());
}

bool may_apply(const TileEpilogue& epilogue, const DepthwiseNhwcForm& form, const Target& target) {
  return epilogue.rows_of_channels && NhwcRegisters(form, target, spare_vectors(&epilogue)).fit;
}

Result<MachineCode> emit_depthwise_nhwc_kernel(const DepthwiseNhwcForm& form, const Target& target,
                                               const TileEpilogue* epilogue) {
  const Error refused = {ErrorCode::unsupported,
                         "an epilogue that depthwise kernels have no room for"};
  if (epilogue != nullptr && !may_apply(*epilogue, form, target)) return refused;
  bool fits_frame = true;
  Result<MachineCode> code =
      assemble(fmt::format("tier {}", name_of(target.tier)), [&](std::span<uint8_t> buffer) {
        NhwcEmitter emitter(form, target, epilogue, buffer);
        MachineCode emitted = emitter.emit();
        fits_frame = emitter.fits_frame();
        return emitted;
      });
  if (!fits_frame) return refused;
  return code;
}

}  // namespace castor::jit
