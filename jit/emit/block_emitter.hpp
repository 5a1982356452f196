// SPDX-License-Identifier: Apache-2.0
// Emitters that do whole blocks take the scales of sixteen at a time. They leave scales that are
// out of a range to the lane program, and choose how to store by the output's alignment.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/emit/bytes_apart.hpp"
#include "jit/emit/control_flow.hpp"
#include "jit/emit/frame.hpp"
#include "jit/emit/nest_loops.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {

/// Scales that are compared at once.
constexpr int scales_per_iteration = 16;

/// The bits of the f32 from which on scales are in range, and of the one at which they are no more.
struct ScaleRange {
  uint32_t min = 0;
  uint32_t limit = 0;
};

enum class ScaleSigns : uint8_t { ignored, must_be_positive };

/// Jumps to `exit` unless the sixteen scales from gpr::period on are in range. Afterwards `scales`
/// has their bits, less those of `range.min`.
void emit_leave_if_out_of_range(Assembler& code, const Xbyak::Reg64& from, const ScaleRange& range,
                                ScaleSigns signs, const Xbyak::Zmm& scales,
                                const Xbyak::Opmask& out_of_range, const Xbyak::Label& exit);

/// Emits what does a row's last elements, which short rows often have none of: one jump goes past
/// it.
template <class EmitTail>
void emit_unless_row_is_done(Assembler& code, const EmitTail& emit_tail) {
  code.cmp(gpr::index, gpr::extent);
  emit_unless(code, Condition::greater_equal, emit_tail);
}

/// Whether a nest reads contiguous elements and one scale for each block of them, and writes
/// contiguous ones.
bool has_blocks(const NestForm& form, int32_t elements, int32_t scales);

/// codes = pairs of the 4-bit codes in its bytes, in the lower half. They get their signs: that bit
/// of the bytes of `signs`, shifted by four, which `sign_bits` have. Overwrites `signs`. `order`:
/// order_of_pairs of the form that the bytes are in.
void emit_signed_nibbles(Assembler& code, const Xbyak::Zmm& codes, const Xbyak::Zmm& signs,
                         const Xbyak::Operand& sign_bits, const Xbyak::Zmm& order, BytesApart form);

/// vpermb: the byte that has each pair of codes. By permutation that is every even one, so that the
/// same order takes the lower bytes of two vectors apart.
std::vector<uint8_t> order_of_pairs(BytesApart form);

/// Does whole blocks of a nest in another way than its lane program, which does the others.
class BlockEmitter {
 public:
  virtual ~BlockEmitter() = default;

  /// Loads what all groups use; once, in the function's entry.
  virtual void emit_constants() = 0;
  /// Does whole iterations of blocks from gpr::index on, at which a block begins, until less than
  /// one is left, or one has a scale or elements for the lane program.
  void emit_blocks();
  /// Elements of such an iteration.
  int elements_per_iteration() const { return scales_per_iteration * block_; }

 protected:
  BlockEmitter(const Nest& nest, const NestForm& form, Assembler& code, const Frame& frame,
               NestLoops& loops);

  virtual void emit_blocks_loop(Stores stores) = 0;

  /// Emits loops that stream where the row's output is aligned, and others that store through the
  /// caches what those leave.
  template <class EmitLoops>
  void emit_by_alignment(const EmitLoops& emit_loops) {
    if (stores_ == Stores::streaming) {
      code_.mov(gpr::counter, frame_.emit_pointer(sink_));
      code_.test(gpr::counter, static_cast<uint32_t>(streaming_alignment - 1));
      emit_unless(code_, Condition::not_equal, [&] { emit_loops(Stores::streaming); });
    }
    emit_loops(Stores::cached);
  }
  void emit_result(const Xbyak::Address& to, const Xbyak::Xmm& from, Stores stores);

  Assembler& code_;
  const Frame& frame_;
  NestLoops& loops_;
  const Stores stores_;
  const size_t sink_;
  const int block_;  ///< elements with one scale; 0: a row
};

}  // namespace castor::jit
