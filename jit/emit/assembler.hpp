// SPDX-License-Identifier: Apache-2.0
// The assembler that emitters write through, with its pool of constants after the code.
#pragma once

#include <xbyak/xbyak.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/emit/code_notes.hpp"
#include "jit/emit/emit_options.hpp"
#include "jit/emit/frame_recorder.hpp"

namespace castor::jit {

class Assembler;

/// Room for code, and what is asked for besides. Refers to both.
struct CodeBuffer {
  std::span<uint8_t> bytes;
  const EmitOptions& options;
};

/// The code that is emitted while the object lives is of one section (jit/code_section.hpp); then
/// the section around it goes on. Nothing where no notes are wanted.
class [[nodiscard]] Section {
 public:
  Section(Assembler& code, CodeSection section, int number = CodeNote::no_number);
  Section(Assembler& code, CodeNote note);
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  ~Section();

 private:
  Assembler* code_ = nullptr;  ///< null: no notes are wanted
};

/// Vector registers of a given width by number.
inline Xbyak::Xmm vector_register(int index, int bits) {
  const auto kind = bits <= 128   ? Xbyak::Operand::XMM
                    : bits <= 256 ? Xbyak::Operand::YMM
                                  : Xbyak::Operand::ZMM;
  return {kind, index};
}

/// The width of a vector register in bits.
inline int width_of(const Xbyak::Xmm& vector) { return static_cast<int>(vector.getBit()); }

/// Xbyak with a constant pool: equal constants are stored once, code addresses them relative to
/// rip, `finish` writes them after the code. Output depends on nothing but the calls. Members are
/// named like the instructions that they emit, as in Xbyak.
///
/// What callers choose belongs into the pool, which is not executable when the code is published:
/// no instruction may have a constant of a function, a bound, a scale or an extent as an immediate
/// or displacement, but only what follows from the kind and the size of the code
/// (runtime/README.md, Generated code and security, lists it).
///
/// Code begins with the entry, where indirect calls may arrive (endbr64). Nothing else in it may be
/// the target of an indirect branch, so there are none: emitters jump and call by labels alone.
///
/// Whatever moves the stack pointer goes through the members below, which note it for unwinding.
/// With frame pointers rbp leads to the caller's frame from the entry to `emit_return`, and no code
/// between may change it.
class Assembler : public Xbyak::CodeGenerator {
 public:
  Assembler(const CodeBuffer& buffer, bool frame_pointers)
      : Xbyak::CodeGenerator(buffer.bytes.size(), buffer.bytes.data()),
        has_frame_pointer_(frame_pointers),
        options_(buffer.options) {
    const Section entry(*this, CodeSection::entry);
    emit_entry();
  }
  Assembler(std::span<uint8_t> buffer, bool frame_pointers)
      : Assembler(CodeBuffer{buffer, EmitOptions{}}, frame_pointers) {}

  /// Whether notes are wanted; members below that take notes do nothing where they are not.
  bool annotates() const { return options_.annotate; }
  const EmitOptions& options() const { return options_; }
  uint32_t position() const { return static_cast<uint32_t>(getSize()); }
  /// Names the section of the code that is emitted while the object lives.
  Section section(CodeSection section, int number = CodeNote::no_number) {
    return Section(*this, section, number);
  }
  /// Names the lanes that the code computes.
  void note_lane(CodeLane lane) { notes_.add(std::move(lane)); }
  /// The code from `loop.begin` to here is a loop.
  void note_loop(CodeLoop loop) {
    if (!annotates()) return;
    loop.end = position();
    notes_.add(std::move(loop));
  }

  /// The address of a constant, aligned to its size (a power of two up to 64).
  Xbyak::Address constant(std::span<const uint8_t> bytes) {
    return ptr[rip + pool_ + (unresolved + static_cast<int>(pool_offset(bytes)))];
  }
  template <class T>
  Xbyak::Address constant_of(const T& value) {
    uint8_t bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    return constant(bytes);
  }

  /// A number for an EVEX instruction that repeats it in each of its 32-bit lanes.
  Xbyak::Address repeated_constant(uint32_t number) {
    uint8_t bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    return ptr_b[rip + pool_ + (unresolved + static_cast<int>(pool_offset(bytes)))];
  }

  /// Keeps code that is seldom run for later: `emit_deferred` emits it, after the last instruction
  /// of what is run otherwise.
  void defer(std::function<void()> emit) {
    deferred_.push_back({std::move(emit), notes_.current()});
  }
  bool has_deferred() const { return !deferred_.empty(); }
  /// The code has the origin of what kept it.
  void emit_deferred() {
    for (Deferred& each : std::exchange(deferred_, {})) {
      each.note.section = CodeSection::deferred;
      const Section noted(*this, std::move(each.note));
      each.emit();
    }
  }

  /// Writes the pool and gives all that was written; call once, after the last instruction.
  MachineCode finish();

  /// Whether rbp is the frame pointer, which the code must leave alone.
  bool has_frame_pointer() const { return has_frame_pointer_; }
  /// Returns to the caller: what was pushed is popped, and the stack pointer where it was.
  void emit_return();

  void push(const Xbyak::Reg64& each);
  void pop(const Xbyak::Reg64& each);
  /// Saves registers on the stack, and takes them from there; the frame pointer is saved already.
  void push_all(std::span<const Xbyak::Reg64> registers) {
    for (const Xbyak::Reg64& each : registers) {
      if (!is_frame_pointer(each)) push(each);
    }
  }
  void pop_all(std::span<const Xbyak::Reg64> registers) {
    for (size_t i = registers.size(); i-- > 0;) {
      if (!is_frame_pointer(registers[i])) pop(registers[i]);
    }
  }

  /// Room on the stack whose size is known at the end alone.
  struct Room {
    size_t field = 0;              ///< that has the size
    std::optional<size_t> change;  ///< the change that describes it, where one does
  };
  Room make_room();
  /// The same, from a multiple of 64 on. The caller's stack pointer is kept at `slot` of the room,
  /// whence `leave_aligned_frame` takes it; `keep` is overwritten.
  Room make_aligned_room(const Xbyak::Reg64& keep, int slot);
  void fill_in_room(const Room& room, int bytes);
  void lower_stack(int bytes);
  void raise_stack(int bytes) { lower_stack(-bytes); }

  /// Room at a multiple of 64. Until the frame is left, `keep` holds the caller's stack pointer, or
  /// memory does, once it was stored there; with a frame pointer neither is written.
  void enter_aligned_frame(const Xbyak::Reg64& keep, int bytes);
  /// Stores it `slot` above the stack pointer.
  void store_callers_stack(const Xbyak::Reg64& keep, int slot = 0);
  void leave_aligned_frame(const Xbyak::Reg64& keep);
  /// Leaves it where the caller's stack pointer is stored `offset` above the stack pointer.
  void leave_aligned_frame(int offset);

  /// Stores a register that the caller counts on at rsp + `offset`, and loads it again.
  void borrow(const Xbyak::Reg64& each, int offset);
  void give_back(const Xbyak::Reg64& each, int offset);

  /// Code that is not reached from what is before it, but from where the frame was such.
  const FrameState& frame_state() const { return frame_.state(); }
  void resume_frame(const FrameState& state) { frame_.resume(getSize(), state); }
  /// Code that is called from where the frame was such.
  void begin_routine(const FrameState& state);

  /// Pads with no-ops to a multiple of `bytes` from the beginning of the code. (Xbyak's own `align`
  /// looks at the address of the buffer, which the output must not depend on.)
  void align_to(size_t bytes) {
    if (const size_t past = getSize() % bytes) nop(bytes - past);
  }

  /// Overwrites a 32-bit field of an instruction that is already emitted.
  void patch(size_t offset, uint32_t value) { rewrite(offset, value, 4); }

 private:
  friend class Section;
  struct Deferred {
    std::function<void()> emit;
    CodeNote note;
  };

  /// Added to displacements until the pool's offset is known, so that none is 0 in its highest
  /// byte.
  static constexpr int unresolved = 1 << 30;

  bool is_frame_pointer(const Xbyak::Reg64& each) const {
    return has_frame_pointer_ && each.getIdx() == Xbyak::Operand::RBP;
  }
  void emit_entry();
  void leave_to_frame_pointer();
  std::vector<uint32_t> resolve_pool();

  size_t pool_offset(std::span<const uint8_t> bytes) {
    for (size_t at = 0; at + bytes.size() <= pool_bytes_.size(); at += bytes.size()) {
      if (std::memcmp(&pool_bytes_[at], bytes.data(), bytes.size()) == 0) return at;
    }
    const size_t at = (pool_bytes_.size() + bytes.size() - 1) / bytes.size() * bytes.size();
    pool_bytes_.resize(at);
    pool_bytes_.insert(pool_bytes_.end(), bytes.begin(), bytes.end());
    return at;
  }

  const bool has_frame_pointer_;
  FrameRecorder frame_;
  int aligned_depth_ = 0;  ///< what the depth of the stack was before the aligned frame
  Xbyak::Label pool_;
  std::vector<uint8_t> pool_bytes_;
  std::vector<Deferred> deferred_;
  EmitOptions options_;  ///< a copy: without notes nobody keeps them
  CodeNotes notes_;
};

inline Section::Section(Assembler& code, CodeSection section, int number) {
  if (!code.annotates()) return;
  code_ = &code;
  code.notes_.begin(code.position(),
                    {.section = section, .number = number, .text = {}, .origin = {}});
}
inline Section::Section(Assembler& code, CodeNote note) {
  if (!code.annotates()) return;
  code_ = &code;
  code.notes_.begin(code.position(), std::move(note));
}
inline Section::~Section() {
  if (code_ != nullptr) code_->notes_.end(code_->position());
}

/// Calls `emit` with a buffer to write to, and with larger ones while its code does not fit. Fails
/// (internal) where the assembler refuses an instruction of `what`, and without memory
/// (out_of_memory).
Result<MachineCode> assemble(std::string_view what, const EmitOptions& options,
                             const std::function<MachineCode(const CodeBuffer&)>& emit);

}  // namespace castor::jit
