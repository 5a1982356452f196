// SPDX-License-Identifier: Apache-2.0
// Emits epilogues (epilogue.hpp) in the code of the microkernels that apply them.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "jit/conv/epilogue/epilogue.hpp"
#include "jit/emit/lane_emitter.hpp"
#include "jit/emit/memory_operands.hpp"
#include "jit/emit/packer.hpp"

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

/// Where the addresses of an epilogue's operands are kept.
enum class AddressesIn : uint8_t {
  registers,  ///< R9, RSI, RDX, R13, R14, R15: of the current row's vectors
  rows,       ///< the frame: of the row's first element, to which a register is added
  pixels,     ///< the frame: of the first pixel, and its row step
};

/// How a microkernel uses an epilogue. Of general registers it may overwrite RAX, and those that
/// hold addresses; of vectors and masks all but those taken, between the kernel's own chunks.
struct EpilogueUse {
  int frame = 0;  ///< bytes from the stack pointer to `EpilogueEmitter::frame_bytes` of its own
  TakenRegisters taken{};
  AddressesIn addresses = AddressesIn::registers;
  /// Addresses in registers: how many vectors of each row are done together, all lanes of them; 0:
  /// vectors one by one, of which k1 names the lanes. In the frame k1 always does.
  int row_vectors = 0;
  Xbyak::Reg64 element{};   ///< of a row, counts from its first: that of the sums' first lane
  Xbyak::Reg64 position{};  ///< rows: elements between consecutive sums; pixels: the pixel
};

/// The addresses of the operands of one epilogue in a kernel's code. `operands` below is where the
/// address of their EpilogueOperands is.
class EpilogueAddresses : public OperandLocator {
 public:
  EpilogueAddresses(Assembler& code, TileEpilogue epilogue, const EpilogueUse& use)
      : code_(code), epilogue_(std::move(epilogue)), use_(use) {}

  /// In registers: goes to element `element` of the first rows; `operands` is the address of the
  /// EpilogueOperands, in RAX or a register that holds no address of an operand.
  void point(const Xbyak::Reg64& operands, const Xbyak::Reg64& element);
  /// In registers: goes on by a number of rows.
  void skip_rows(const Xbyak::Reg64& operands, const Xbyak::Reg64& rows);
  /// Goes on to the next row. Overwrites `EpilogueUse::element` where addresses are in the frame.
  void next_row(const Xbyak::Address& operands);
  /// In the frame: asks for the cache lines of results `distance` elements (rows) or pixels ahead.
  /// Overwrites `scratch` (rows).
  void prefetch(const Xbyak::Address& distance, const Xbyak::Reg64& scratch = Xbyak::util::rax);

  ChunkMode mode(size_t) const override;
  Stores stores() const override { return Stores::cached; }
  ChunkAddress emit_chunk_address(size_t operand, int) override;
  int64_t element_of_iteration() const override { return 0; }

 protected:
  /// Of the frame, before spilled values: the caller's MXCSR, then an EpilogueOperand of each
  /// operand.
  static constexpr int mxcsr_bytes = 8;
  static constexpr int saved_bytes = 128;
  static_assert(mxcsr_bytes + sizeof(EpilogueOperand) * (max_tile_operands + 1) <= saved_bytes);

  /// In the frame: copies the operands. Overwrites `EpilogueUse::element` (rows) or `position`.
  void load_operands(const Xbyak::Address& operands);
  /// In registers: an operand's address, and its way to the next row (sign 1) or back (-1).
  Xbyak::Reg64 pointer(size_t operand) const;
  void add_row_step(size_t operand, const Xbyak::Address& operands, int sign);
  /// In the frame.
  Xbyak::Address slot(size_t operand, size_t field);
  bool in_registers() const { return use_.addresses == AddressesIn::registers; }

  Assembler& code_;
  const TileEpilogue epilogue_;
  const EpilogueUse use_;
  int vector_ = 0;  ///< of the row, where several are done together

 private:
  template <class Visit>
  void for_each_operand(const Visit& visit);
};

/// A result of 8 bits, whose chunks of 16 lanes are packed four at a time.
class PackedSink final : public Sink {
 public:
  static constexpr int chunks_of_pack = 4;
  /// Stores the first `chunks` of a full pack. `is_flush`: not directly after the last chunk.
  using Put = std::function<void(LaneEmitter&, const OwnedVector& pack, int chunks, bool is_flush)>;

  PackedSink(const LaneInst& store, Put put) : store_(store), put_(std::move(put)) {}
  void reserve_constants(LaneEmitter& emitter) override;
  void emit_store(LaneEmitter& emitter, const LaneInst& inst) override;
  /// Stores what waits to be packed.
  void flush(LaneEmitter& emitter);

 private:
  LaneInst store_;
  Put put_;
  Packer packer_;
  int waiting_ = 0;  ///< chunks
};

/// Emits an epilogue in a kernel's code: the program for one vector of sums after another. What is
/// the same for all vectors of a row is done once for it, but for vectors one by one.
class EpilogueEmitter final : public EpilogueAddresses {
 public:
  static constexpr int frame_bytes = saved_bytes + 32 * 64;

  EpilogueEmitter(Assembler& code, const Target& target, const TileEpilogue& epilogue,
                  const EpilogueUse& use);

  /// Whether all values fit the frame; known when all code is emitted.
  bool fits_frame() const { return lanes_.spill_bytes() <= frame_bytes - saved_bytes; }

  /// Sets the float environment that the program needs, and puts the caller's back.
  void enter();
  void leave();
  /// Constants, and what is the same for all rows.
  void begin();
  /// The same, and copies the operands to the frame.
  void begin(const Xbyak::Address& operands);
  /// In the frame: what is the same for a row; for pixels, for some channels of all of them.
  void begin_row() { lanes_.emit_hoisted(LoopLevel::row, sources_, {}); }
  /// Applies the program to one vector of sums in memory, or in a register.
  void apply(const Xbyak::Address& sums);
  void apply(const Xbyak::Xmm& sums);
  /// In rows of the frame: stores what waits to be packed; `element` is one row of sums further
  /// than at the last vector.
  void flush();

  /// Where several vectors of a row are done together: rows of a group, which make up whole packs.
  int group_rows() const;
  /// Applies the program to consecutive rows, at most a group, and goes on to the next row. `sums`:
  /// those of the first row's first vector; the others follow.
  void apply_rows(const Xbyak::RegExp& sums, int rows, const Xbyak::Address& operands);

 private:
  /// The sums, wherever they are.
  struct Sums final : Source {
    void emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xbyak::Xmm& to) override;
    std::optional<Xbyak::Address> address;
    Xbyak::Xmm vector;
  };
  /// One element for all lanes.
  struct Repeated final : Source {
    Repeated(size_t of, OperandLocator& by) : operand(of), locator(by) {}
    void emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xbyak::Xmm& to) override;
    const size_t operand;
    OperandLocator& locator;
  };

  std::vector<LoopLevel> levels() const;
  void add_operand(size_t operand);
  void add_stores();
  void put_in_tile(size_t operand, const OwnedVector& pack, int chunks, bool is_flush);
  void put_chunks(const Xbyak::Reg64& row, const Xbyak::Zmm& pack, int first, int end, int vector);
  void put_in_rows(size_t operand, LaneEmitter& emitter, const OwnedVector& pack, int chunks,
                   bool is_flush);
  void put_row_chunks(const Xbyak::Zmm& pack, int chunks, const Xbyak::Xmm* masked);

  LaneEmitter lanes_;
  Sums sums_;
  std::deque<Repeated> repeated_;
  std::deque<MemorySource> memory_sources_;
  std::deque<MemorySink> memory_sinks_;
  std::deque<PackedSink> packed_sinks_;
  std::vector<Source*> sources_;
  std::vector<Sink*> sinks_;
  int row_ = 0;  ///< of a group
  std::optional<Xbyak::Address> row_operands_;
};

}  // namespace castor::jit
