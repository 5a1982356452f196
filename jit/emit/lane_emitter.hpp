// SPDX-License-Identifier: Apache-2.0
// Emits lane programs: registers for values, and one small emitter for each lane operation.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "jit/code.hpp"
#include "jit/emit/assembler.hpp"
#include "jit/emit/bytes_apart.hpp"
#include "jit/lane/hoist.hpp"
#include "jit/lane/program.hpp"
#include "jit/target.hpp"

namespace castor::jit {

class LaneEmitter;

/// Where a `load` takes lanes from: memory, or registers that another emitter filled.
class Source {
 public:
  virtual ~Source() = default;
  /// Reserves the vectors that the source wants in registers across the loop (permutation tables).
  virtual void reserve_constants(LaneEmitter&) {}
  /// Loads one chunk of lanes of `inst.type` into `to`, integers extended by their sign; for a
  /// gather, the elements at the indices in inst.a, which has another register.
  virtual void emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xbyak::Xmm& to) = 0;
};

/// Where a `store` puts lanes: memory, or registers that another emitter reads.
class Sink {
 public:
  virtual ~Sink() = default;
  /// Reserves the vectors that the sink wants in registers across the loop (permutation tables).
  virtual void reserve_constants(LaneEmitter&) {}
  /// Stores one chunk, which it gets by emitter.take(inst.a) or emitter.use(inst.a).
  virtual void emit_store(LaneEmitter& emitter, const LaneInst& inst) = 0;
};

/// A vector register that its owner may use until the object dies.
class OwnedVector {
 public:
  OwnedVector() = default;
  OwnedVector(LaneEmitter& emitter, int index) : emitter_(&emitter), index_(index) {}
  OwnedVector(OwnedVector&& other) noexcept
      : emitter_(std::exchange(other.emitter_, nullptr)), index_(other.index_) {}
  OwnedVector& operator=(OwnedVector&& other) noexcept {
    std::swap(emitter_, other.emitter_);
    std::swap(index_, other.index_);
    return *this;
  }
  ~OwnedVector();
  Xbyak::Xmm as(int bits) const { return vector_register(index_, bits); }

 private:
  LaneEmitter* emitter_ = nullptr;
  int index_ = -1;
};

/// A mask register that its owner may use until the object dies.
class OwnedMask {
 public:
  OwnedMask(LaneEmitter& emitter, int index) : emitter_(&emitter), index_(index) {}
  OwnedMask(const OwnedMask&) = delete;
  OwnedMask& operator=(const OwnedMask&) = delete;
  ~OwnedMask();
  Xbyak::Opmask get() const { return Xbyak::Opmask(index_); }

 private:
  LaneEmitter* emitter_;
  int index_;
};

/// A stack slot for one vector that its owner may use until the object dies.
class OwnedSlot {
 public:
  OwnedSlot(LaneEmitter& emitter, int index) : emitter_(&emitter), index_(index) {}
  OwnedSlot(const OwnedSlot&) = delete;
  OwnedSlot& operator=(const OwnedSlot&) = delete;
  ~OwnedSlot();
  int index() const { return index_; }

 private:
  LaneEmitter* emitter_;
  int index_;
};

/// The last operand of an instruction: a register, or memory.
class LastOperand {
 public:
  explicit LastOperand(const Xbyak::Xmm& in) : in_(in) {}
  explicit LastOperand(const Xbyak::Address& at) : in_(at) {}
  operator const Xbyak::Operand&() const {
    return std::visit([](const auto& each) -> const Xbyak::Operand& { return each; }, in_);
  }

 private:
  std::variant<Xbyak::Xmm, Xbyak::Address> in_;
};

/// One bit for each register that the surrounding code uses.
struct TakenRegisters {
  uint32_t vectors = 0;
  uint32_t masks = 0;
};

/// Emits chunks of one lane program into one function.
///
/// Values live in registers from their definition to their last use; when registers run out, the
/// value whose next use is farthest goes to the stack. Constants live in registers for the whole
/// function as far as the program leaves any, else they are loaded at each use, or, without
/// AVX-512, taken from memory by the instruction. So do values that stay the same for a row, or for
/// the whole nest.
class LaneEmitter {
 public:
  /// `pending_vectors`: registers that sinks hold from one chunk to the next, also across rows.
  /// `levels`: the loop level of each instruction; empty: all belong to chunks.
  LaneEmitter(Assembler& code, const Target& target, const LaneProgram& program, int lanes,
              int pending_vectors, std::vector<LoopLevel> levels = {},
              const TakenRegisters& taken = {});
  LaneEmitter(const LaneEmitter&) = delete;
  LaneEmitter& operator=(const LaneEmitter&) = delete;

  /// Emits the loads of constants that are kept in registers; once, before any loop.
  void emit_constants(std::span<Source* const> sources, std::span<Sink* const> sinks);
  /// Emits the instructions that are hoisted to a level: nest, before all loops; row, at the
  /// beginning of each row.
  void emit_hoisted(LoopLevel level, std::span<Source* const> sources);
  /// Releases the registers and slots of a level's values, so that it can be emitted once more.
  void release_hoisted(LoopLevel level);
  /// Emits the instructions at the level of chunks for one chunk, which notes call `section`.
  void emit_chunk(std::span<Source* const> sources, std::span<Sink* const> sinks,
                  CodeSection section = CodeSection::chunk, int number = CodeNote::no_number);

  /// Sets how encoders take the bytes of 16-bit lanes; before any code is emitted.
  void set_bytes_apart(BytesApart form) { bytes_apart_ = form; }

  // For emitters of operations, sources and sinks.
  Assembler& code() { return code_; }
  BytesApart bytes_apart() const { return bytes_apart_; }
  const Target& target() const { return target_; }
  const LaneProgram& program() const { return program_; }
  bool has_avx512() const { return target_.has_avx512(); }
  /// Lanes of what is being emitted: of a chunk, or of a half of it.
  int lanes() const { return lanes_; }
  /// Which half of a chunk is being emitted, where instructions are for halves; else 0.
  int half() const { return half_; }
  /// The register with the first half of a joined value, which may be the second's.
  Xbyak::Xmm first_half(LaneId joined);
  /// Bits of a register that holds a chunk of such lanes.
  int register_bits(LaneType type) const { return lanes_ * bits_of(type); }
  LaneType type_of(LaneId id) const { return program_.code[static_cast<size_t>(id)].type; }

  /// The register of an operand of the current instruction.
  Xbyak::Xmm use(LaneId id);
  /// The same for an instruction's last operand. Without AVX-512 a constant that no register keeps
  /// is a whole vector in memory, which takes no instruction of its own.
  LastOperand use_last(LaneId id);
  Xbyak::Opmask use_mask(LaneId id);
  /// A register for the current instruction's result; it may be that of an operand that dies
  /// here, so the instruction that writes it must be the last that reads operands.
  Xbyak::Xmm define();
  Xbyak::Opmask define_mask();
  /// A register for the result, distinct from every operand.
  Xbyak::Xmm define_apart();
  /// A register for the result that already holds `start`'s bits: for instructions that overwrite
  /// or merge.
  Xbyak::Xmm define_from(LaneId start);
  /// The operand in a register that the caller may overwrite and keep.
  OwnedVector take(LaneId id);
  /// Emits a jump that is taken if the mask, an operand of the current instruction, has a lane.
  void emit_jump_if_any(LaneId mask, const Xbyak::Label& to);
  OwnedVector scratch();
  OwnedMask scratch_mask();
  OwnedSlot scratch_slot();
  Xbyak::Address address(const OwnedSlot& slot, int offset = 0);

  /// Keeps a vector constant in a register across the loop if one is left; call it in
  /// reserve_constants. `vector` gives that register, else loads the constant into `fallback`.
  void reserve_vector(std::span<const uint8_t> bytes);
  Xbyak::Xmm vector(std::span<const uint8_t> bytes, OwnedVector& fallback);
  /// The same with a register of the caller's as the fallback.
  Xbyak::Xmm vector(std::span<const uint8_t> bytes, const Xbyak::Xmm& fallback);

  /// The same for an instruction's last operand, which is in memory where no register keeps it.
  /// `bits`: of the instruction, where it takes only the first of them.
  LastOperand last_vector(std::span<const uint8_t> bytes, int bits = 0);
  /// The same for an opmask; kept only where the program itself has none.
  void reserve_mask(uint64_t bits);
  Xbyak::Opmask mask(uint64_t bits, std::optional<OwnedMask>& fallback);

  /// A register for the caller's own use across the loop, if one is left; call it in
  /// reserve_constants.
  std::optional<int> reserve_register();

  /// Stack that values were spilled to, from the frame's offset `spill_base` on.
  int spill_bytes() const { return spill_slots_ * 64; }
  int spills() const { return spills_; }
  void set_spill_base(int offset) { spill_base_ = offset; }

 private:
  friend class OwnedVector;
  friend class OwnedMask;
  friend class OwnedSlot;
  struct Location {
    int vector = -1;
    int mask = -1;
    int slot = -1;
  };
  struct ReservedVector {
    std::vector<uint8_t> bytes;
    int vector;
  };

  struct ReservedMask {
    uint64_t bits;
    int mask;
  };

  std::optional<Xbyak::Xmm> reserved(std::span<const uint8_t> bytes, int bits) const;
  int max_alive(LoopLevel level) const;
  void plan_hoisted();
  void emit(LaneId id, std::span<Source* const> sources, std::span<Sink* const> sinks);
  void emit_halves(std::span<Source* const> sources, CodeSection section, int number);
  void emit_range(LaneId begin, LaneId end, std::span<Source* const> sources,
                  std::span<Sink* const> sinks, CodeSection section, int number);
  void note_lanes();
  CodeNote note_of(LaneId id, CodeSection section, int number) const;
  void emit_keep_in_slot(LaneId id);
  int take_slot();
  void emit_store_in_slot(Location& at);
  int next_use(LaneId id) const;
  bool is_constant(LaneId id) const {
    return program_.code[static_cast<size_t>(id)].op == LaneOp::constant;
  }
  LoopLevel level_of(LaneId id) const { return levels_[static_cast<size_t>(id)]; }
  bool is_hoisted(LaneId id) const { return !is_constant(id) && level_of(id) != LoopLevel::chunk; }
  /// Whether chunks load the value from its slot at each use.
  bool has_home(LaneId id) const { return homes_[static_cast<size_t>(id)]; }
  bool is_operand(LaneId id) const;
  int allocate_vector();
  int allocate_mask();
  void emit_spill(bool mask);
  void release(LaneId id);
  void release_dying_operands();
  void emit_pinned_constants();
  void emit_constant(const LaneInst& inst, int vector);
  Location& location(LaneId id) { return locations_[static_cast<size_t>(id)]; }
  Xbyak::Address slot_address(int slot);

  Assembler& code_;
  const Target& target_;
  const LaneProgram& program_;
  const int chunk_lanes_;
  const LaneId join_;  ///< the instruction before which all are for halves of chunks; 0: none are
  int lanes_;
  int half_ = 0;
  OwnedVector first_half_;  ///< the joined value's, while the second half is emitted
  BytesApart bytes_apart_ = BytesApart::by_permutation;
  std::vector<Location> locations_;
  std::vector<LaneId> last_use_;
  std::vector<bool> pinned_;       // constants and hoisted values that keep their register
  std::vector<LoopLevel> levels_;  // of instructions
  std::vector<bool> kept_;         // values that an inner level uses
  std::vector<bool> wants_pin_;    // those of them that should keep their register
  std::vector<bool> homes_;        // those that are kept in a slot instead
  std::vector<ReservedVector> reserved_;
  std::vector<ReservedMask> reserved_masks_;
  int pinnable_ = 0;
  uint32_t free_vectors_ = 0;
  uint32_t free_masks_ = 0;
  std::vector<LaneId> operands_;  // of the current instruction
  LaneId current_ = no_lane;
  int spill_base_ = 0;
  int spill_slots_ = 0;
  std::vector<int> free_slots_;
  int spills_ = 0;
};

/// Emits one instruction of the program: reads operands, defines the result.
using LaneOpEmitter = void (*)(LaneEmitter& emitter, const LaneInst& inst);

/// The emitter of an operation other than load, store and constant.
LaneOpEmitter emitter_of(LaneOp op);

}  // namespace castor::jit
