// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/assembler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <new>

namespace castor::jit {

namespace {

constexpr size_t field_bytes = 4;

uint64_t word_at(const uint8_t* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

/// Offsets of 32-bit fields that are zero in `before` and have another highest byte in `after`; all
/// else is equal. Searched from the end, the first byte that differs is the highest of a field. No
/// field ends within the first eight bytes, where the entry and an opcode are.
std::vector<uint32_t> changed_fields(std::span<const uint8_t> before,
                                     std::span<const uint8_t> after) {
  std::vector<uint32_t> fields;
  fields.reserve(64);
  for (size_t end = before.size(); end > sizeof(uint64_t);) {
    const size_t begin = end - sizeof(uint64_t);
    const uint64_t changes = word_at(&before[begin]) ^ word_at(&after[begin]);
    end -= static_cast<size_t>(std::countl_zero(changes)) / 8;  // 64 bits where nothing changes
    if (changes == 0) continue;
    end -= field_bytes;
    fields.push_back(static_cast<uint32_t>(end));
  }
  std::ranges::reverse(fields);
  return fields;
}

}  // namespace

void Assembler::emit_entry() {
  endbr64();
  if (!has_frame_pointer_) return;
  push(rbp);
  mov(rbp, rsp);
  frame_.find_by_register(getSize(), dwarf_number(Xbyak::Operand::RBP));
}

void Assembler::emit_return() {
  if (has_frame_pointer_) {
    pop(rbp);
    frame_.find_by_stack(getSize(), 8);
  }
  ret();
}

void Assembler::push(const Xbyak::Reg64& each) {
  CodeGenerator::push(each);
  frame_.push(getSize(), dwarf_number(each.getIdx()));
}

void Assembler::pop(const Xbyak::Reg64& each) {
  CodeGenerator::pop(each);
  frame_.pop(getSize(), dwarf_number(each.getIdx()));
}

Assembler::Room Assembler::make_room() {
  constexpr int any_large_number = 0x7ffffff0;  // makes room for a 32-bit field
  sub(rsp, any_large_number);
  return {getSize() - field_bytes, frame_.make_room(getSize())};
}

Assembler::Room Assembler::make_aligned_room(const Xbyak::Reg64& keep, int slot) {
  constexpr int any_large_number = 0x7ffffff0;
  enter_aligned_frame(keep, any_large_number);
  const size_t align_bytes = 4;  // and rsp, imm8
  const size_t field = getSize() - align_bytes - field_bytes;
  store_callers_stack(keep, slot);
  return {field, std::nullopt};
}

void Assembler::fill_in_room(const Room& room, int bytes) {
  patch(room.field, static_cast<uint32_t>(bytes));
  if (room.change) frame_.fill_in_room(*room.change, bytes);
}

void Assembler::lower_stack(int bytes) {
  bytes >= 0 ? sub(rsp, bytes) : add(rsp, -bytes);
  frame_.lower_stack(getSize(), bytes);
}

void Assembler::enter_aligned_frame(const Xbyak::Reg64& keep, int bytes) {
  aligned_depth_ = frame_.state().depth;
  if (!has_frame_pointer_) {
    mov(keep, rsp);
    frame_.find_by_register(getSize(), dwarf_number(keep.getIdx()));
  }
  sub(rsp, bytes);
  and_(rsp, -64);
}

void Assembler::store_callers_stack(const Xbyak::Reg64& keep, int slot) {
  if (has_frame_pointer_) return;
  mov(qword[rsp + slot], keep);
  frame_.find_by_memory(getSize(), slot);
}

void Assembler::leave_aligned_frame(const Xbyak::Reg64& keep) {
  if (has_frame_pointer_) return leave_to_frame_pointer();
  mov(rsp, keep);
  frame_.find_by_stack(getSize(), aligned_depth_);
}

void Assembler::leave_aligned_frame(int offset) {
  if (has_frame_pointer_) return leave_to_frame_pointer();
  mov(rsp, qword[rsp + offset]);
  frame_.find_by_stack(getSize(), aligned_depth_);
}

/// The return address and the caller's rbp are above the frame pointer, what was pushed is below.
void Assembler::leave_to_frame_pointer() { lea(rsp, ptr[rbp - (aligned_depth_ - 16)]); }

void Assembler::borrow(const Xbyak::Reg64& each, int offset) {
  mov(qword[rsp + offset], each);
  frame_.borrow(getSize(), dwarf_number(each.getIdx()), offset);
}

void Assembler::give_back(const Xbyak::Reg64& each, int offset) {
  mov(each, qword[rsp + offset]);
  frame_.give_back(getSize(), dwarf_number(each.getIdx()), offset);
}

void Assembler::begin_routine(const FrameState& state) {
  frame_.resume(getSize(), state);
  constexpr int return_address = 8;
  frame_.lower_stack(getSize(), return_address);
}

MachineCode Assembler::finish() {
  constexpr uint8_t breakpoint = 0xcc;
  MachineCode machine_code;
  notes_.move_to(machine_code, position());
  machine_code.instruction_bytes = static_cast<uint32_t>(getSize());
  if (!pool_bytes_.empty()) {
    while (getSize() % 64 != 0) db(breakpoint);
  }
  machine_code.pool_begin = static_cast<uint32_t>(getSize());
  machine_code.pool_references = resolve_pool();
  machine_code.frame = frame_.take();
  for (uint8_t value : pool_bytes_) db(value);
  ready();
  const auto* written = reinterpret_cast<const std::byte*>(getCode());
  machine_code.bytes.assign(written, written + getSize());
  return machine_code;
}

/// Begins the pool here, and returns the offsets of the fields that refer to it. Xbyak does not
/// tell them; but they hold zeros until the label is bound, and then they do not.
std::vector<uint32_t> Assembler::resolve_pool() {
  const std::vector<uint8_t> before(getCode(), getCode() + getSize());
  L(pool_);
  std::vector<uint32_t> fields = changed_fields(before, {getCode(), getSize()});
  for (const uint32_t field : fields) {
    uint32_t displacement = 0;
    std::memcpy(&displacement, getCode() + field, field_bytes);
    patch(field, displacement - unresolved);
  }
  return fields;
}

Result<MachineCode> assemble(std::string_view what, const EmitOptions& options,
                             const std::function<MachineCode(const CodeBuffer&)>& emit) {
  constexpr size_t first_bytes = size_t{16} << 10;
  constexpr size_t max_bytes = size_t{64} << 20;
  for (size_t bytes = first_bytes;; bytes *= 4) {
    try {
      const std::unique_ptr<uint8_t[]> buffer(new uint8_t[bytes]);
      return emit({{buffer.get(), bytes}, options});
    } catch (const Xbyak::Error& error) {
      const bool too_small = static_cast<int>(error) == Xbyak::ERR_CODE_IS_TOO_BIG;
      if (too_small && bytes < max_bytes) continue;
      return Error{
          ErrorCode::internal,
          fmt::format("the assembler refused an instruction of {}: {}", what, error.what())};
    } catch (const std::bad_alloc&) {
      return Error{ErrorCode::out_of_memory, "no memory to generate code in"};
    }
  }
}

}  // namespace castor::jit
