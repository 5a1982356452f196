// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/windows.hpp"

#include <bit>

#include "ir/types/storage.hpp"
#include "jit/emit/bitwise_copy.hpp"
#include "jit/emit/control_flow.hpp"
#include "jit/emit/op_helpers.hpp"

namespace castor::jit {

/// Loads take halves and less, and a Zen 5 forwards to them from stores that cross no cache line,
/// which is why the frame begins with one (castor-bench, Convert/u4/u16/256KiB).
void Windows::emit_store_codes(const WindowOperand& at, const Xbyak::Xmm& codes) const {
  Assembler& code = emitter_.code();
  constexpr int half = 32;
  if (vector_bytes() == half) return code.vmovups(in_window(at), codes);
  code.vmovups(in_window(at), Xbyak::Ymm(codes.getIdx()));
  code.vextracti64x4(in_window(at, half), Xbyak::Zmm(codes.getIdx()), 1);
}

void Windows::emit_fill_whole(const WindowOperand& at, const BitUnpacker& unpacker,
                              const Xbyak::Address& packed) const {
  const OwnedVector vector = emitter_.scratch();
  const Xmm codes = vector.as(vector_bytes() * 8);
  unpacker.emit_unpack(emitter_, packed, codes);
  emit_store_codes(at, codes);
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
  if (at.access == Access::bitwise) return emit_copy_bitwise(emitter_, frame_, at, true);
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
  emit_store_codes(at, codes);
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
  emit_copy_one_bitwise(emitter_, frame_, at);
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
  if (at.access == Access::bitwise) return emit_copy_bitwise(emitter_, frame_, at, false);
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

}  // namespace castor::jit
