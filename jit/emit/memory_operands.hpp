// SPDX-License-Identifier: Apache-2.0
// Sources and sinks in memory.
#pragma once

#include <memory>
#include <optional>

#include "jit/emit/bit_pack.hpp"
#include "jit/emit/bit_unpack.hpp"
#include "jit/emit/code_signs.hpp"
#include "jit/emit/encoder.hpp"
#include "jit/emit/lane_emitter.hpp"
#include "jit/emit/packer.hpp"
#include "jit/emit/saturated_bytes.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {

/// How the chunk being emitted reaches memory.
enum class ChunkMode : uint8_t {
  whole,   ///< all lanes
  masked,  ///< the lanes of opmask `tail_mask` (AVX-512)
  staged,  ///< through a buffer on the stack that holds a whole chunk; sub-byte elements as bytes
  tiled,   ///< all lanes, in a window on the stack that holds a whole tile's sub-byte elements
};

/// The opmask of the lanes of a masked chunk.
inline const Xbyak::Opmask tail_mask(1);

/// The address of an operand's chunk, for the code being emitted.
struct ChunkAddress {
  ChunkMode mode = ChunkMode::whole;
  Xbyak::Reg64 base = Xbyak::Reg64(Xbyak::Operand::RSP);  ///< an address
  Xbyak::Reg64 index =
      Xbyak::Reg64(Xbyak::Operand::RSI);  ///< elements from there, or bytes of packed ones
  int scale = 0;                          ///< bytes for each count of index; 0: there is no index
  int64_t displacement = 0;               ///< bytes of this chunk from there
};

/// Knows the addresses of the operands of the chunk being emitted.
class OperandLocator {
 public:
  virtual ~OperandLocator() = default;
  virtual ChunkMode mode(size_t operand) const = 0;
  /// How whole vectors are stored.
  virtual Stores stores() const = 0;
  /// The address of an operand's chunk, `chunks_back` chunks before the one being emitted, or after
  /// it where that is negative. May emit
  /// code that loads the base address, which holds until the next call.
  virtual ChunkAddress emit_chunk_address(size_t operand, int chunks_back) = 0;
  /// Elements from the beginning of the main loop's iteration to the chunk being emitted.
  virtual int64_t element_of_iteration() const = 0;
};

/// The address as instructions take it.
Xbyak::Address address_of(Assembler& code, const ChunkAddress& chunk);

/// A move between a register and memory, in either direction, of elements under a mask.
template <class To, class From>
void emit_move_masked(Assembler& code, const To& to, const From& from, int element_bits) {
  switch (element_bits) {
    case 8: return code.vmovdqu8(to, from);
    case 16: return code.vmovdqu16(to, from);
    case 32: return code.vmovdqu32(to, from);
    default: return code.vmovdqu64(to, from);
  }
}

/// A move between a register and memory, in either direction, of `bits` bits.
template <class To, class From>
void emit_move_whole(Assembler& code, const To& to, const From& from, int bits) {
  if (bits == 32) {
    code.vmovd(to, from);
  } else if (bits == 64) {
    code.vmovq(to, from);
  } else {
    code.vmovups(to, from);
  }
}

/// Loads a chunk of elements (sub-byte ones as codes in bytes) into lanes of `lane_bits`.
void emit_load_lanes(LaneEmitter& emitter, const Xbyak::Xmm& to, const Xbyak::Address& from,
                     ElementType element, int lane_bits);
/// Loads a chunk under the opmask of `to`.
void emit_load_lanes_masked(LaneEmitter& emitter, const Xbyak::Xmm& to, const Xbyak::Address& from,
                            ElementType element, int lane_bits);

class MemorySource : public Source {
 public:
  /// `divides`: lanes after a tail's elements have a number that divides, where that is an f32.
  MemorySource(size_t operand, ElementType element, OperandLocator& locator, bool divides = false)
      : operand_(operand), element_(element), locator_(locator), divides_(divides) {}
  void reserve_constants(LaneEmitter& emitter) override;
  void emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xbyak::Xmm& to) override;
  /// Only for sub-byte elements.
  const BitUnpacker& unpacker() const { return *unpacker_; }

 private:
  size_t operand_;
  ElementType element_;
  OperandLocator& locator_;
  bool divides_;
  std::optional<BitUnpacker> unpacker_;
};

class MemorySink : public Sink {
 public:
  /// `packs`: lanes wider than the element are collected over several whole chunks and stored as
  /// one full vector.
  MemorySink(size_t operand, ElementType element, bool packs, OperandLocator& locator)
      : operand_(operand), element_(element), packs_(packs), locator_(locator) {}
  void reserve_constants(LaneEmitter& emitter) override;
  void emit_store(LaneEmitter& emitter, const LaneInst& inst) override;

  /// The instruction that stores to this sink, known before any code is emitted.
  void set_store(const LaneInst& inst, const LaneProgram& program);
  /// Only for sub-byte elements.
  const BitPacker& bit_packer() const { return *bit_packer_; }

 private:
  size_t operand_;
  ElementType element_;
  bool packs_;
  OperandLocator& locator_;
  bool makes_nibbles() const;
  void emit_store_looked_up(LaneEmitter& emitter, const LaneInst& inst);
  void emit_store_vector(LaneEmitter& emitter, const ChunkAddress& to, OwnedVector full);

  OwnedVector emit_one_chunk(LaneEmitter& emitter, const LaneInst& inst) const;
  OwnedVector emit_one_chunk_of_codes(LaneEmitter& emitter, const LaneInst& inst) const;
  bool emit_collect(LaneEmitter& emitter, const LaneInst& inst, OwnedVector& full);

  LaneInst store_{};
  const ByteTable* table_ = nullptr;  // of a store that looks up
  std::unique_ptr<Encoder> encoder_;  // of a store that encodes; else null
  Packer packer_;
  Packer sign_packer_;  // where signs are stored with the codes
  CodeSigns code_signs_;
  SaturatedBytes saturated_;                 // for stores without an encoder
  std::optional<OwnedVector> first_vector_;  // of 16-bit lanes that wait for the second one
  std::optional<BitPacker> bit_packer_;
};

}  // namespace castor::jit
