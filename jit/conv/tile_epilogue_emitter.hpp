// SPDX-License-Identifier: Apache-2.0
// Emits epilogues (tile_epilogue.hpp) in the code of the kernels that apply them.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <optional>
#include <vector>

#include "jit/conv/tile_epilogue.hpp"
#include "jit/emit/lane_emitter.hpp"
#include "jit/emit/memory_operands.hpp"

namespace castor::jit {

/// What a kernel gives that has no room for an epilogue.
inline Error epilogue_refused() {
  return {ErrorCode::unsupported, "an epilogue that the convolution's kernel has no room for"};
}

/// Assembles a kernel by Emitter(spec, target, epilogue, buffer), whose frame may turn out to be
/// too small for the epilogue; it may be null.
template <class Emitter, class Spec>
Result<MachineCode> assemble_with_epilogue(const Spec& spec, const Target& target,
                                           const TileEpilogue* epilogue) {
  bool fits_frame = true;
  const std::string what = fmt::format("tier {}", name_of(target.tier));
  Result<MachineCode> code = assemble(what, [&](std::span<uint8_t> buffer) {
    Emitter emitter(spec, target, epilogue, buffer);
    MachineCode emitted = emitter.emit();
    fits_frame = emitter.fits_frame();
    return emitted;
  });
  if (!fits_frame) return epilogue_refused();
  return code;
}

/// Emits the epilogue in a kernel's code. Between its own chunks the kernel's vectors may be
/// overwritten but for `taken_vectors`; general registers are RAX and those of `pointers`.
class TileEpilogueEmitter : public OperandLocator {
 public:
  /// `frame`: bytes from the stack pointer to `frame_bytes` that belong to the epilogue.
  TileEpilogueEmitter(Assembler& code, const Target& target, const TileEpilogue& epilogue,
                      uint32_t taken_vectors, int frame);

  static constexpr int frame_bytes = 64 + 32 * 64;
  /// Whether all values fit; known when all code is emitted.
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
