// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/windows.hpp"

#include <array>

#include "jit/emit/bit_fields.hpp"
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
const Reg64 place(Xbyak::Operand::R11);      // in the window
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

}  // namespace

void Windows::fill_whole(const WindowOperand& at, const BitUnpacker& unpacker,
                         const Xbyak::Address& packed) const {
  const OwnedVector vector = emitter_.scratch();
  const Xmm codes = vector.as(vector_bytes() * 8);
  unpacker.unpack(emitter_, packed, codes);
  emitter_.code().vmovups(in_window(at), codes);
}

void Windows::drain_whole(const WindowOperand& at, const BitPacker& packer,
                          const Xbyak::Address& packed) const {
  const OwnedVector vector = emitter_.scratch();
  const Xmm codes = vector.as(vector_bytes() * 8);
  emitter_.code().vmovups(codes, in_window(at));
  packer.store(emitter_, packed, codes, false, false);
}

/// cursor = address of the group's first byte. Groups begin at whole bytes.
void Windows::locate_bytes(const WindowOperand& at) const {
  Assembler& code = emitter_.code();
  code.mov(gpr::cursor, frame_.group_begin());
  code.imul(gpr::cursor, gpr::cursor, bits_of(at.element));
  code.shr(gpr::cursor, 3);
  code.add(gpr::cursor, frame_.pointer(at.operand));
}

/// counter = bytes of the group's elements.
void Windows::count_bytes(const WindowOperand& at) const {
  Assembler& code = emitter_.code();
  const int bits = bits_of(at.element);
  code.mov(gpr::counter, frame_.group_end());
  code.sub(gpr::counter, frame_.group_begin());
  if (info(at.element).order == StorageOrder::split) {
    const int elements = 24 / bits;  // of three bytes
    code.add(gpr::counter, elements - 1);
    code.shr(gpr::counter, bits == 3 ? 3 : 2);
    code.lea(gpr::counter, code.ptr[gpr::counter + gpr::counter * 2]);
    return;
  }
  code.imul(gpr::counter, gpr::counter, bits);
  code.add(gpr::counter, 7);
  code.shr(gpr::counter, 3);
}

/// `counter` bytes, at least one, the last first.
void Windows::copy_bytes(const Xbyak::RegExp& to, const Xbyak::RegExp& from) const {
  Assembler& code = emitter_.code();
  Xbyak::Label next;
  code.L(next);
  code.mov(gpr::scratch.cvt8(), code.ptr[from + gpr::counter - 1]);
  code.mov(code.ptr[to + gpr::counter - 1], gpr::scratch.cvt8());
  code.dec(gpr::counter);
  code.jnz(next);
}

void Windows::fill(const WindowOperand& at, const BitUnpacker& unpacker) const {
  if (at.access == Access::bitwise) return copy_bitwise(at, true);
  Assembler& code = emitter_.code();
  locate_bytes(at);
  count_bytes(at);
  if (!emitter_.has_avx512()) {
    copy_bytes(gpr::stack + (window(at) + vector_bytes()), gpr::cursor);
    return fill_whole(at, unpacker, in_window(at, vector_bytes()));
  }
  const OwnedVector vector = emitter_.scratch();
  const OwnedMask bytes = emitter_.scratch_mask();
  const Xmm codes = vector.as(vector_bytes() * 8);
  code.or_(gpr::scratch, -1);
  code.bzhi(gpr::scratch, gpr::scratch, gpr::counter);
  code.kmovq(bytes.get(), gpr::scratch);
  unpacker.unpack_masked(emitter_, code.ptr[gpr::cursor], bytes.get(), codes);
  code.vmovups(in_window(at), codes);
}

/// Zeros behind the group's last element.
void Windows::clear_beyond_end(const WindowOperand& at) const {
  Assembler& code = emitter_.code();
  const OwnedVector vector = emitter_.scratch();
  const Xmm zero = vector.as(vector_bytes() * 8);
  emitter_.has_avx512() ? code.vpxord(zero, zero, zero) : code.vpxor(zero, zero, zero);
  code.mov(gpr::scratch, frame_.group_end());
  code.sub(gpr::scratch, frame_.group_begin());
  code.vmovups(code.ptr[gpr::stack + gpr::scratch + window(at)], zero);
}

void Windows::drain(const WindowOperand& at, const BitPacker& packer) const {
  if (at.access == Access::bitwise) return copy_bitwise(at, false);
  Assembler& code = emitter_.code();
  clear_beyond_end(at);
  locate_bytes(at);
  count_bytes(at);
  if (!emitter_.has_avx512()) {
    drain_whole(at, packer, in_window(at, vector_bytes()));
    return copy_bytes(gpr::cursor, gpr::stack + (window(at) + vector_bytes()));
  }
  const OwnedVector vector = emitter_.scratch();
  const OwnedMask bytes = emitter_.scratch_mask();
  const Xmm codes = vector.as(vector_bytes() * 8);
  code.vmovups(codes, in_window(at));
  packer.pack(emitter_, codes);
  code.or_(gpr::scratch, -1);
  code.bzhi(gpr::scratch, gpr::scratch, gpr::counter);
  code.kmovq(bytes.get(), gpr::scratch);
  code.vmovdqu8(code.ptr[gpr::cursor] | bytes.get(), codes);
}

/// Element by element, from any bit on; touches no byte without a bit of the element.
void Windows::copy_bitwise(const WindowOperand& at, bool in) const {
  Assembler& code = emitter_.code();
  for (const BitField& field : bit_fields(at.element)) {
    code.mov(loop::element, frame_.group_begin());
    code.imul(loop::element, at.step);
    code.add(loop::element, frame_.pointer(at.operand));
    for (int i = 0; i < Frame::borrowed_count; ++i) {
      code.mov(frame_.borrowed(i), Reg64(loop::borrowed[i]));
    }
    copy_field(at, field, in);
    for (int i = 0; i < Frame::borrowed_count; ++i) {
      code.mov(Reg64(loop::borrowed[i]), frame_.borrowed(i));
    }
  }
}

void Windows::copy_field(const WindowOperand& at, const BitField& field, bool in) const {
  Assembler& code = emitter_.code();
  const bool straddles = may_straddle(at.element, field);
  const uint32_t field_mask = (1u << field.width) - 1;
  Xbyak::Label next;
  Xbyak::Label one_byte;
  const auto in_memory = [&](int offset) { return code.ptr[loop::group + loop::byte + offset]; };
  const auto skip_if_in_one_byte = [&] {
    if (!straddles) return;
    code.cmp(loop::bit.cvt32(), 8 - field.width);
    code.jle(one_byte);
  };

  code.mov(loop::base, at.base);
  code.lea(loop::positions, code.constant_of(positions_of(at.element, field)));
  code.xor_(loop::place.cvt32(), loop::place.cvt32());
  code.L(next);
  code.mov(loop::group, loop::element);
  code.shr(loop::group, 3);
  code.imul(loop::group, loop::group, bits_of(at.element));
  code.add(loop::group, loop::base);
  code.mov(loop::bit.cvt32(), loop::element.cvt32());
  code.and_(loop::bit.cvt32(), static_cast<uint32_t>(storage_group - 1));
  code.movzx(loop::byte.cvt32(), code.byte[loop::positions + loop::bit]);
  code.mov(loop::bit.cvt32(), loop::byte.cvt32());
  code.and_(loop::bit.cvt32(), 7);
  code.shr(loop::byte.cvt32(), 3);

  const Xbyak::Address in_window = code.byte[gpr::stack + loop::place + window(at)];
  code.movzx(loop::value.cvt32(), in ? code.byte[loop::group + loop::byte] : in_window);
  if (in) {
    skip_if_in_one_byte();
    if (straddles) {
      code.movzx(loop::mask.cvt32(), code.byte[loop::group + loop::byte + 1]);
      code.shl(loop::mask.cvt32(), 8);
      code.or_(loop::value.cvt32(), loop::mask.cvt32());
    }
    code.L(one_byte);
    code.shr(loop::value.cvt32(), Xbyak::util::cl);
    code.and_(loop::value.cvt32(), field_mask);
    if (field.value_bit > 0) {
      code.shl(loop::value.cvt32(), field.value_bit);
      code.or_(in_window, loop::value.cvt8());
    } else {
      code.mov(in_window, loop::value.cvt8());
    }
  } else {
    if (field.value_bit > 0) code.shr(loop::value.cvt32(), field.value_bit);
    code.and_(loop::value.cvt32(), field_mask);
    code.shl(loop::value.cvt32(), Xbyak::util::cl);
    code.mov(loop::mask.cvt32(), field_mask);
    code.shl(loop::mask.cvt32(), Xbyak::util::cl);
    code.not_(loop::mask.cvt32());
    code.and_(in_memory(0), loop::mask.cvt8());
    code.or_(in_memory(0), loop::value.cvt8());
    skip_if_in_one_byte();
    if (straddles) {
      code.shr(loop::mask.cvt32(), 8);
      code.shr(loop::value.cvt32(), 8);
      code.and_(in_memory(1), loop::mask.cvt8());
      code.or_(in_memory(1), loop::value.cvt8());
    }
    code.L(one_byte);
  }
  code.add(loop::element, at.step);
  code.inc(loop::place);
  code.lea(gpr::scratch, code.ptr[loop::place]);
  code.add(gpr::scratch, frame_.group_begin());
  code.cmp(gpr::scratch, frame_.group_end());
  code.jl(next, Xbyak::CodeGenerator::T_NEAR);
}

}  // namespace castor::jit
