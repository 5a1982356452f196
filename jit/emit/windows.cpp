// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/windows.hpp"

#include <array>
#include <bit>

#include "jit/emit/bit_fields.hpp"
#include "jit/emit/control_flow.hpp"
#include "jit/emit/op_helpers.hpp"

namespace castor::jit {

namespace {

using Xbyak::Reg32;
using Xbyak::Reg64;

/// Registers of the loop that copies element by element; the frame keeps what they held.
namespace loop {
const Reg64 element = gpr::cursor;           // its number from the operand's base
const Reg64 bit(Xbyak::Operand::RCX);        // where a field begins in its byte
const Reg64 byte(Xbyak::Operand::RAX);       // which byte of the group that is
const Reg64 group(Xbyak::Operand::R9);       // address of the group of eight elements
const Reg64 base(Xbyak::Operand::R10);       // address of element 0
const Reg64 offset(Xbyak::Operand::R11);     // in the window
const Reg64 value(Xbyak::Operand::RBX);      // the field's bits
const Reg64 positions(Xbyak::Operand::RBP);  // table of a field's positions in its group
const Reg64 mask(Xbyak::Operand::RDX);       // of the field in memory
constexpr int borrowed[Frame::borrowed_count] = {Xbyak::Operand::R9,  Xbyak::Operand::R10,
                                                 Xbyak::Operand::R11, Xbyak::Operand::RBX,
                                                 Xbyak::Operand::RBP, Xbyak::Operand::RDX};
}  // namespace loop

/// Where the field of each of a group's elements begins.
std::array<uint8_t, storage_group> positions_of(ElementType element, const BitField& field) {
  std::array<uint8_t, storage_group> positions;
  for (int i = 0; i < storage_group; ++i) {
    positions[static_cast<size_t>(i)] = static_cast<uint8_t>(field_position(element, field, i));
  }
  return positions;
}

bool may_straddle(ElementType element, const BitField& field) {
  for (uint8_t position : positions_of(element, field)) {
    if (position % 8 + field.width > 8) return true;
  }
  return false;
}

/// Emits the loop that copies one field of a group's elements between memory and the window.
class FieldCopy {
 public:
  FieldCopy(Assembler& code, const Frame& frame, const WindowOperand& at, const BitField& field)
      : code_(code),
        frame_(frame),
        at_(at),
        field_(field),
        straddles_(may_straddle(at.element, field)) {}

  /// loop::element is the first element's number.
  void emit(bool in) {
    code_.mov(loop::base, at_.base);
    code_.lea(loop::positions, code_.constant_of(positions_of(at_.element, field_)));
    code_.xor_(loop::offset.cvt32(), loop::offset.cvt32());
    emit_loop_while(code_, Condition::less, [&] {
      emit_locate_group();
      emit_locate_field();
      in ? emit_read() : emit_write();
      emit_step();
    });
  }

 private:
  Xbyak::Address in_window() const {
    return code_.byte[gpr::stack + loop::offset + frame_.staging_offset(at_.operand)];
  }
  Xbyak::Address in_memory(int offset) const {
    return code_.byte[loop::group + loop::byte + offset];
  }
  uint32_t field_mask() const { return (1u << field_.width) - 1; }
  void emit_locate_group();
  void emit_locate_field();
  template <class Body>
  void emit_if_straddling(const Body& body);
  void emit_read();
  void emit_write();
  void emit_step();

  Assembler& code_;
  const Frame& frame_;
  const WindowOperand& at_;
  const BitField& field_;
  const bool straddles_;  ///< the field of some element straddles two bytes
};

/// group = address of the eight elements that the element is one of.
void FieldCopy::emit_locate_group() {
  code_.mov(loop::group, loop::element);
  code_.shr(loop::group, 3);
  code_.imul(loop::group, loop::group, bits_of(at_.element));
  code_.add(loop::group, loop::base);
}

/// byte, bit = where the field begins in the group.
void FieldCopy::emit_locate_field() {
  code_.mov(loop::bit.cvt32(), loop::element.cvt32());
  code_.and_(loop::bit.cvt32(), static_cast<uint32_t>(storage_group - 1));
  code_.movzx(loop::byte.cvt32(), code_.byte[loop::positions + loop::bit]);
  code_.mov(loop::bit.cvt32(), loop::byte.cvt32());
  code_.and_(loop::bit.cvt32(), 7);
  code_.shr(loop::byte.cvt32(), 3);
}

/// `body` is done for fields that straddle two bytes.
template <class Body>
void FieldCopy::emit_if_straddling(const Body& body) {
  if (!straddles_) return;
  code_.cmp(loop::bit.cvt32(), 8 - field_.width);
  emit_unless(code_, Condition::less_equal, Jump::shortest, body);
}

/// From memory to the window. The first field of an element sets its byte, further ones add to it.
void FieldCopy::emit_read() {
  code_.movzx(loop::value.cvt32(), in_memory(0));
  emit_if_straddling([&] {
    code_.movzx(loop::mask.cvt32(), in_memory(1));
    code_.shl(loop::mask.cvt32(), 8);
    code_.or_(loop::value.cvt32(), loop::mask.cvt32());
  });
  code_.shr(loop::value.cvt32(), Xbyak::util::cl);
  code_.and_(loop::value.cvt32(), field_mask());
  if (field_.value_bit == 0) return code_.mov(in_window(), loop::value.cvt8());
  code_.shl(loop::value.cvt32(), field_.value_bit);
  code_.or_(in_window(), loop::value.cvt8());
}

/// From the window to memory, where all other bits stay as they are.
void FieldCopy::emit_write() {
  code_.movzx(loop::value.cvt32(), in_window());
  if (field_.value_bit > 0) code_.shr(loop::value.cvt32(), field_.value_bit);
  code_.and_(loop::value.cvt32(), field_mask());
  code_.shl(loop::value.cvt32(), Xbyak::util::cl);
  code_.mov(loop::mask.cvt32(), field_mask());
  code_.shl(loop::mask.cvt32(), Xbyak::util::cl);
  code_.not_(loop::mask.cvt32());
  code_.and_(in_memory(0), loop::mask.cvt8());
  code_.or_(in_memory(0), loop::value.cvt8());
  emit_if_straddling([&] {
    code_.shr(loop::mask.cvt32(), 8);
    code_.shr(loop::value.cvt32(), 8);
    code_.and_(in_memory(1), loop::mask.cvt8());
    code_.or_(in_memory(1), loop::value.cvt8());
  });
}

/// Moves to the next element; the flags are less if the group has one.
void FieldCopy::emit_step() {
  code_.add(loop::element, at_.step);
  code_.inc(loop::offset);
  code_.lea(gpr::scratch, code_.ptr[loop::offset]);
  code_.add(gpr::scratch, frame_.group_begin());
  code_.cmp(gpr::scratch, frame_.group_end());
}

}  // namespace

void Windows::emit_fill_whole(const WindowOperand& at, const BitUnpacker& unpacker,
                              const Xbyak::Address& packed) const {
  const OwnedVector vector = emitter_.scratch();
  const Xmm codes = vector.as(vector_bytes() * 8);
  unpacker.emit_unpack(emitter_, packed, codes);
  emitter_.code().vmovups(in_window(at), codes);
}

void Windows::emit_drain_whole(const WindowOperand& at, const BitPacker& packer,
                               const Xbyak::Address& packed) const {
  const OwnedVector vector = emitter_.scratch();
  const Xmm codes = vector.as(vector_bytes() * 8);
  emitter_.code().vmovups(codes, in_window(at));
  packer.emit_store(emitter_, packed, codes, false, false);
}

/// cursor = address of the group's first byte. Groups begin at whole bytes.
void Windows::emit_locate_bytes(const WindowOperand& at) const {
  Assembler& code = emitter_.code();
  code.mov(gpr::cursor, frame_.group_begin());
  code.imul(gpr::cursor, gpr::cursor, bits_of(at.element));
  code.shr(gpr::cursor, 3);
  code.add(gpr::cursor, frame_.emit_pointer(at.operand));
}

/// counter = bytes of the group's elements.
void Windows::emit_count_bytes(const WindowOperand& at) const {
  Assembler& code = emitter_.code();
  const int bits = bits_of(at.element);
  code.mov(gpr::counter, frame_.group_end());
  code.sub(gpr::counter, frame_.group_begin());
  if (info(at.element).order == StorageOrder::split) {
    const auto group = static_cast<unsigned>(aligned_elements(at.element));  // takes three bytes
    code.add(gpr::counter, group - 1);
    code.shr(gpr::counter, std::countr_zero(group));
    code.lea(gpr::counter, code.ptr[gpr::counter + gpr::counter * 2]);
    return;
  }
  code.imul(gpr::counter, gpr::counter, bits);
  code.add(gpr::counter, 7);
  code.shr(gpr::counter, 3);
}

/// Copies `counter` bytes, at least one, the last first.
void Windows::emit_copy_bytes(const Xbyak::RegExp& to, const Xbyak::RegExp& from) const {
  Assembler& code = emitter_.code();
  emit_loop_while(code, Condition::not_equal, Jump::shortest, [&] {
    code.mov(gpr::scratch.cvt8(), code.ptr[from + gpr::counter - 1]);
    code.mov(code.ptr[to + gpr::counter - 1], gpr::scratch.cvt8());
    code.dec(gpr::counter);
  });
}

void Windows::emit_fill(const WindowOperand& at, const BitUnpacker& unpacker) const {
  if (at.access == Access::bitwise) return emit_copy_bitwise(at, true);
  Assembler& code = emitter_.code();
  emit_locate_bytes(at);
  emit_count_bytes(at);
  if (!emitter_.has_avx512()) {
    emit_copy_bytes(gpr::stack + (window(at) + vector_bytes()), gpr::cursor);
    return emit_fill_whole(at, unpacker, in_window(at, vector_bytes()));
  }
  const OwnedVector vector = emitter_.scratch();
  const OwnedMask bytes = emitter_.scratch_mask();
  const Xmm codes = vector.as(vector_bytes() * 8);
  code.or_(gpr::scratch, -1);
  code.bzhi(gpr::scratch, gpr::scratch, gpr::counter);
  code.kmovq(bytes.get(), gpr::scratch);
  unpacker.emit_unpack_masked(emitter_, code.ptr[gpr::cursor], bytes.get(), codes);
  code.vmovups(in_window(at), codes);
}

/// Codes within one byte need no loop.
void Windows::emit_copy_one_of_a_byte(const WindowOperand& at) const {
  Assembler& code = emitter_.code();
  const int bits = bits_of(at.element);
  const int log2_bits = std::countr_zero(static_cast<unsigned>(bits));
  code.mov(gpr::scratch, frame_.emit_pointer(at.operand));
  code.mov(gpr::counter.cvt32(), gpr::scratch.cvt32());
  code.and_(gpr::counter.cvt32(), 8 / bits - 1);
  if (bits > 1) code.shl(gpr::counter.cvt32(), log2_bits);
  if (info(at.element).order == StorageOrder::msb_first) code.xor_(gpr::counter.cvt32(), 8 - bits);
  code.shr(gpr::scratch, 3 - log2_bits);
  code.add(gpr::scratch, at.base);
  code.movzx(gpr::scratch.cvt32(), code.byte[gpr::scratch]);
  code.shr(gpr::scratch.cvt32(), Xbyak::util::cl);
  code.and_(gpr::scratch.cvt32(), (1 << bits) - 1);
  code.mov(code.qword[gpr::stack + window(at)], gpr::scratch);
}

void Windows::emit_fill_one(const WindowOperand& at) const {
  Assembler& code = emitter_.code();
  const int bits = bits_of(at.element);
  const bool in_a_byte = 8 % bits == 0 && info(at.element).order != StorageOrder::split;
  if (in_a_byte) return emit_copy_one_of_a_byte(at);
  code.mov(frame_.group_begin(), 0);
  code.mov(frame_.group_end(), 1);
  code.mov(code.qword[gpr::stack + window(at)], 0);
  emit_copy_bitwise(at, true);
}

/// Stores zeros after the group's last element.
void Windows::emit_clear_beyond_end(const WindowOperand& at) const {
  Assembler& code = emitter_.code();
  const OwnedVector vector = emitter_.scratch();
  const Xmm zero = vector.as(vector_bytes() * 8);
  emit_zero(emitter_, zero);
  code.mov(gpr::scratch, frame_.group_end());
  code.sub(gpr::scratch, frame_.group_begin());
  code.vmovups(code.ptr[gpr::stack + gpr::scratch + window(at)], zero);
}

void Windows::emit_drain(const WindowOperand& at, const BitPacker& packer) const {
  if (at.access == Access::bitwise) return emit_copy_bitwise(at, false);
  Assembler& code = emitter_.code();
  emit_clear_beyond_end(at);
  emit_locate_bytes(at);
  emit_count_bytes(at);
  if (!emitter_.has_avx512()) {
    emit_drain_whole(at, packer, in_window(at, vector_bytes()));
    return emit_copy_bytes(gpr::cursor, gpr::stack + (window(at) + vector_bytes()));
  }
  const OwnedVector vector = emitter_.scratch();
  const OwnedMask bytes = emitter_.scratch_mask();
  const Xmm codes = vector.as(vector_bytes() * 8);
  code.vmovups(codes, in_window(at));
  packer.emit_pack(emitter_, codes);
  code.or_(gpr::scratch, -1);
  code.bzhi(gpr::scratch, gpr::scratch, gpr::counter);
  code.kmovq(bytes.get(), gpr::scratch);
  code.vmovdqu8(code.ptr[gpr::cursor] | bytes.get(), codes);
}

/// Copies element by element, from any bit on; touches no byte without a bit of the element.
void Windows::emit_copy_bitwise(const WindowOperand& at, bool in) const {
  Assembler& code = emitter_.code();
  for (const BitField& field : bit_fields(at.element)) {
    code.mov(loop::element, frame_.group_begin());
    code.imul(loop::element, at.step);
    code.add(loop::element, frame_.emit_pointer(at.operand));
    for (int i = 0; i < Frame::borrowed_count; ++i) {
      code.mov(frame_.borrowed(i), Reg64(loop::borrowed[i]));
    }
    FieldCopy(code, frame_, at, field).emit(in);
    for (int i = 0; i < Frame::borrowed_count; ++i) {
      code.mov(Reg64(loop::borrowed[i]), frame_.borrowed(i));
    }
  }
}

}  // namespace castor::jit
