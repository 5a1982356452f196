// SPDX-License-Identifier: Apache-2.0
// Windows: where chunks meet sub-byte operands. A window is a stretch of the stack with one byte
// for each element of a group; a group has one element per byte of a vector. Windows of sources are
// filled before the group's chunks, windows of sinks drained after them.
#pragma once

#include "jit/emit/chunk_plan.hpp"
#include "jit/emit/frame.hpp"
#include "jit/emit/memory_operands.hpp"

namespace castor::jit {

/// Stack that one window takes: the group's bytes, and the same again for what is stored beyond its
/// end and for bytes on their way from or to memory.
constexpr int window_bytes(int vector_bits) { return 2 * vector_bits / 8; }

/// Stack that the window of a tile takes: a byte for each element; where it is a sink's, a word on
/// its way to memory, too (see emit/shifted_window.hpp); and some more for what is stored beyond
/// the end, or for bytes on their way from memory.
constexpr int tile_window_bytes(bool of_sink) { return tile_elements * (of_sink ? 1 + 2 : 1) + 64; }

/// One sub-byte operand and where its bits are.
struct WindowOperand {
  size_t operand;
  ElementType element;
  Access access;
  Xbyak::Address step;  ///< of the innermost axis, in elements; for bitwise access
  Xbyak::Address base;  ///< address that bitwise access counts from
  int window_elements;  ///< that have room in the window
};

/// Emits the copies between windows and memory.
class Windows {
 public:
  Windows(LaneEmitter& emitter, const Frame& frame) : emitter_(emitter), frame_(frame) {}

  /// Copies a whole group from `packed` to the window, or back.
  void emit_fill_whole(const WindowOperand& at, const BitUnpacker& unpacker,
                       const Xbyak::Address& packed) const;
  void emit_drain_whole(const WindowOperand& at, const BitPacker& packer,
                        const Xbyak::Address& packed) const;

  /// Copies the one element of a uniform operand to the window, as a number of eight bytes.
  /// Overwrites group_begin() and group_end().
  void emit_fill_one(const WindowOperand& at) const;

  /// Copies the elements from frame.group_begin() to frame.group_end() of the row to the window.
  void emit_fill(const WindowOperand& at, const BitUnpacker& unpacker) const;
  /// Copies these elements from the window. Where they are contiguous, the last byte's unused bits
  /// become 0.
  void emit_drain(const WindowOperand& at, const BitPacker& packer) const;

 private:
  int window(const WindowOperand& at) const { return frame_.staging_offset(at.operand); }
  int vector_bytes() const { return emitter_.target().vector_bits() / 8; }
  Xbyak::Address in_window(const WindowOperand& at, int offset = 0) const {
    return emitter_.code().ptr[gpr::stack + window(at) + offset];
  }
  void emit_store_codes(const WindowOperand& at, const Xbyak::Xmm& codes) const;
  void emit_copy_one_of_a_byte(const WindowOperand& at) const;
  void emit_locate_bytes(const WindowOperand& at) const;
  void emit_count_bytes(const WindowOperand& at) const;
  void emit_copy_bytes(const Xbyak::RegExp& to, const Xbyak::RegExp& from) const;
  void emit_clear_beyond_end(const WindowOperand& at) const;

  LaneEmitter& emitter_;
  const Frame& frame_;
};

}  // namespace castor::jit
