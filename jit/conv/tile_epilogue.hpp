// SPDX-License-Identifier: Apache-2.0
// The elementwise function behind a convolution, as its kernels apply it to a tile of sums before
// they store it: the tensor of i32 exists nowhere, not even in parts.
//
// A tile's vectors of sums lie along rows of the result: rows of a channel's pixels, or of a
// pixel's channels. Each operand lies along them element by element, or has one element for a row.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "jit/conv/epilogue_walk.hpp"
#include "jit/emit/lane_emitter.hpp"
#include "jit/emit/memory_operands.hpp"

namespace castor::jit {

struct TileOperand {
  ElementType element = ElementType::i32;
  bool repeats = false;       ///< one element for a whole row
  bool same_in_rows = false;  ///< all rows are the same one
};

/// A function that kernels can apply.
struct TileEpilogue {
  LaneProgram program;  ///< where each chunk is narrowed by itself
  LaneProgram packed;   ///< the same where stores narrow several at a time
  bool packs = false;   ///< whether `program` is that
  size_t inputs = 0;
  size_t source = 0;  ///< the operand that the sums are
  std::vector<TileOperand> operands;
  bool rows_of_channels = false;  ///< rows are pixels' channels; else channels' pixels
  std::string key;                ///< equal keys are equal functions on one target
};

/// Operands beside the sums, each of which has a register for its address.
inline constexpr size_t most_tile_operands = 6;

/// The epilogue of a nest, where kernels can apply it: with AVX-512, lanes of at most 32 bits, few
/// operands of whole bytes, a program that does not go lane by lane and is not long.
std::optional<TileEpilogue> tile_epilogue(const Nest& nest, const EpilogueWalk& walk,
                                          const Target& target);

/// The same as if the function's tensors were dense, and their unknown extents likely ones: for
/// those who look at code without binding it.
std::optional<TileEpilogue> likely_tile_epilogue(const Function& function, const Nest& nest,
                                                 const Target& target);

/// Whether an instruction stores elements of 8 bits to which 32-bit lanes may be packed, several
/// chunks at a time.
bool is_packable(const TileEpilogue& epilogue, const LaneInst& inst);

/// The loop levels of a program's instructions where chunks follow each other for which the
/// operands that `is_same` says are the same: along a row those with one element for it, from row
/// to row those that all rows share.
std::vector<LoopLevel> levels_of_chunks(const TileEpilogue& epilogue, bool TileOperand::*is_same);

/// Vectors that kernels whose own stay in use leave to an epilogue; null: none.
int vectors_for(const TileEpilogue* epilogue);

/// What a kernel gives that has no room for an epilogue.
inline Error epilogue_refused() {
  return {ErrorCode::unsupported, "an epilogue that the convolution's kernel has no room for"};
}

/// Assembles a kernel by Emitter(form, target, epilogue, buffer), whose frame may turn out to be
/// too small for the epilogue; it may be null.
template <class Emitter, class Form>
Result<MachineCode> assemble_with_epilogue(const Form& form, const Target& target,
                                           const TileEpilogue* epilogue) {
  bool fits_frame = true;
  const std::string what = fmt::format("tier {}", name_of(target.tier));
  Result<MachineCode> code = assemble(what, [&](std::span<uint8_t> buffer) {
    Emitter emitter(form, target, epilogue, buffer);
    MachineCode emitted = emitter.emit();
    fits_frame = emitter.fits_frame();
    return emitted;
  });
  if (!fits_frame) return epilogue_refused();
  return code;
}

/// Where an operand of one call lies.
struct EpilogueOperand {
  int64_t data = 0;      ///< address of the first row's first element
  int64_t row_step = 0;  ///< bytes from one row to the next
};

/// Emits the epilogue in a kernel's code. Between its own chunks the kernel's vectors may be
/// overwritten but for `taken_vectors`; general registers are RAX and those of `pointers`.
class TileEpilogueEmitter : public OperandLocator {
 public:
  /// `frame`: bytes from the stack pointer to `frame_bytes` that belong to the epilogue.
  TileEpilogueEmitter(Assembler& code, const Target& target, const TileEpilogue& epilogue,
                      uint32_t taken_vectors, int frame);

  static constexpr int frame_bytes = 64 + 32 * 64;
  /// Whether all values have a place; known when all code is emitted.
  bool fits_frame() const { return lanes_.spill_bytes() <= frame_bytes - saved_bytes; }

  /// Sets the float environment that the program needs, and puts the caller's back.
  void enter();
  void leave();
  /// Fills the registers of constants.
  void emit_constants() { lanes_.emit_constants(sources_, sinks_); }
  /// Points at element `element` of the operands' first rows: `operands` is the address of their
  /// EpilogueOperands, in RAX or a register that is not one of `pointers`.
  void point(const Xbyak::Reg64& operands, const Xbyak::Reg64& element);
  /// Goes on by a number of rows, or to the next one.
  void skip_rows(const Xbyak::Reg64& operands, const Xbyak::Reg64& rows);
  void next_row(const Xbyak::Address& operands);
  /// Applies the program to sums in memory, or in a vector: to those lanes that k1 names.
  void apply(const Xbyak::Address& sums);
  void apply(const Xbyak::Xmm& sums);

  ChunkMode mode(size_t) const override { return ChunkMode::masked; }
  Stores stores() const override { return Stores::cached; }
  ChunkAddress emit_chunk_address(size_t operand, int) override;
  int64_t element_of_iteration() const override { return 0; }

 protected:
  static constexpr int saved_bytes = 64;  ///< of the frame, in front of spilled values

  /// `levels` and `pending_vectors` as LaneEmitter has them.
  TileEpilogueEmitter(Assembler& code, const Target& target, const TileEpilogue& epilogue,
                      const TakenRegisters& taken, int frame, std::vector<LoopLevel> levels,
                      int pending_vectors = 0);

  Xbyak::Reg64 pointer(size_t operand) const;
  /// The part of the program that is the same for all chunks, or for those of a row.
  void emit_hoisted(LoopLevel level) { lanes_.emit_hoisted(level, sources_, {}); }

  Assembler& code_;
  const TileEpilogue& epilogue_;
  const int frame_;
  LaneEmitter lanes_;
  std::vector<Sink*> sinks_;

 private:
  /// The sums, wherever they are.
  class Sums : public Source {
   public:
    void emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xbyak::Xmm& to) override;
    std::optional<Xbyak::Address> address;
    Xbyak::Xmm vector;
  };
  /// One element for all lanes.
  class Repeated : public Source {
   public:
    Repeated(size_t operand, OperandLocator& locator) : operand_(operand), locator_(locator) {}
    void emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xbyak::Xmm& to) override;

   private:
    size_t operand_;
    OperandLocator& locator_;
  };

  void apply_to_sums() { lanes_.emit_chunk(sources_, sinks_, {}); }

  Sums sums_;
  std::deque<Repeated> repeated_;
  std::deque<MemorySource> memory_sources_;
  std::deque<MemorySink> memory_sinks_;
  std::vector<Source*> sources_;
};

}  // namespace castor::jit
