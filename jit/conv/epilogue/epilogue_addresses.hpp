// SPDX-License-Identifier: Apache-2.0
// Addresses of an epilogue's operands, in registers or in the frame of a kernel's code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "jit/conv/epilogue/epilogue.hpp"
#include "jit/emit/memory_operands.hpp"

namespace castor::jit {

/// The order in which a kernel hands in vectors of accumulators, and with it where the addresses of
/// the operands are kept. k1 names the lanes that are stored, but for `rows`, which store all.
enum class EpilogueOrder : uint8_t {
  /// One vector of each row of a register tile. R9, RSI, RDX, R13, R14 and R15 hold addresses of
  /// the current row's elements, and those that are left what these step by.
  vectors,
  /// All vectors of a row, row by row. The same registers hold addresses of the row's elements.
  rows,
  /// Vectors of one channel, from one row of the image to the next. The frame holds addresses of
  /// the channel's first element.
  channels,
  /// Vectors of channels, of one pixel or another. The frame holds addresses of the first pixel.
  pixels,
};

/// How a kernel uses an epilogue. Of general registers it may overwrite RAX, and where registers
/// hold addresses the six of these; of vectors and masks all but those taken, between the kernel's
/// own chunks.
struct EpilogueUse {
  int frame = 0;  ///< bytes from the stack pointer to `frame_bytes` of its own
  TakenRegisters taken{};
  EpilogueOrder order = EpilogueOrder::vectors;
  int row_vectors = 1;  ///< rows: vectors of each
  /// channels, pixels: counts elements from a row's first to that of the accumulators' first lane.
  Xbyak::Reg64 element{};
  /// channels: elements from one vector to the next; pixels: the pixel.
  Xbyak::Reg64 position{};
};

/// Knows where a kernel's code has the operands of its epilogue.
class EpilogueAddresses : public OperandLocator {
 public:
  EpilogueAddresses(Assembler& code, TileEpilogue epilogue, const EpilogueUse& use)
      : code_(code), epilogue_(std::move(epilogue)), use_(use) {}

  /// Addresses in registers: goes to an element of row 0, or on by a number of rows. What rows step
  /// by is in registers too, as far as there are any: loads from the frame would wait for stores of
  /// results, one of which often has the same low twelve bits of its address.
  void emit_point(const Xbyak::Reg64& element);
  void emit_skip_rows(const Xbyak::Reg64& rows);
  /// Goes on to the next row; not for pixels.
  void emit_next_row();
  /// Addresses in registers: prefetches what rows of channels read element by element: `elements`
  /// of each of `rows` channels, from the pixel on whose number is at `pixel`. Overwrites RAX and
  /// `scratch`.
  void emit_prefetch_of_rows(int rows, int elements, const Xbyak::Address& pixel,
                             const Xbyak::Reg64& scratch);
  /// Addresses in the frame: prefetches the cache lines of results `distance` elements or pixels
  /// ahead. Overwrites `scratch` (channels).
  void emit_prefetch(const Xbyak::Address& distance,
                     const Xbyak::Reg64& scratch = Xbyak::util::rax);

  /// For results of 8 bits, where vectors follow each other along a row or a channel: RAX = the
  /// address of the current row's elements; then that of the row before.
  void emit_result(size_t operand);
  void emit_previous_row(size_t operand);
  int row_vectors() const { return use_.row_vectors; }
  int current_vector() const { return vector_; }  ///< of the row

  ChunkMode mode(size_t) const override;
  Stores stores() const override { return Stores::cached; }
  ChunkAddress emit_chunk_address(size_t operand, int) override;
  int64_t element_of_iteration() const override { return 0; }

 protected:
  static constexpr int lanes = 16;
  /// The frame begins with the caller's MXCSR and the call's EpilogueOperands; spilled values
  /// follow.
  static constexpr int operands_at = 16;
  static constexpr int saved_bytes = 128;
  static_assert(operands_at + sizeof(EpilogueOperand) * (max_tile_operands + 1) <= saved_bytes);

  /// Calls `visit(k)` for each operand in memory but the accumulators.
  template <class Visit>
  void for_each_operand(const Visit& visit) const {
    for (size_t k = 0; k < epilogue_.in_memory(); ++k) {
      if (k != epilogue_.source) visit(k);
    }
  }
  int bytes_of(size_t operand) const { return bits_of(epilogue_.element(operand)) / 8; }
  bool in_registers() const { return use_.order <= EpilogueOrder::rows; }
  Xbyak::Reg64 pointer(size_t operand) const;
  /// Whether an operand's address differs from row to row: else its step is 0.
  bool moves(size_t operand) const { return !epilogue_.operands[operand].same_in_rows; }
  /// Whether one element is for the whole tile, where kernels hand in row by row: it is broadcast
  /// before addresses are in registers.
  bool is_uniform(size_t operand) const {
    return use_.order == EpilogueOrder::rows && operand != epilogue_.source &&
           epilogue_.operands[operand].repeats && !moves(operand);
  }
  /// The register that an operand's step is in; nothing where none is left.
  std::optional<Xbyak::Reg64> step_register(size_t operand) const;
  /// Calls `emit(step)` with where an operand's step is.
  template <class Emit>
  void with_row_step(size_t operand, const Emit& emit) {
    const std::optional<Xbyak::Reg64> step = step_register(operand);
    step ? emit(*step) : emit(row_step(operand));
  }
  /// The fields of an operand's EpilogueOperand are in the frame.
  Xbyak::Address data(size_t operand) { return slot(operand, offsetof(EpilogueOperand, data)); }
  Xbyak::Address row_step(size_t operand) {
    return slot(operand, offsetof(EpilogueOperand, row_step));
  }

  Assembler& code_;
  const TileEpilogue epilogue_;
  const EpilogueUse use_;
  int vector_ = 0;  ///< of the current row

 private:
  Xbyak::Address slot(size_t operand, size_t field);
};

}  // namespace castor::jit
