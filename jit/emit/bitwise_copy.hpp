// SPDX-License-Identifier: Apache-2.0
// Copies between a window and sub-byte elements that begin at any bit.
#pragma once

#include <array>

#include "jit/emit/windows.hpp"

namespace castor::jit {

/// Registers of the loops that copy a group's elements; the frame keeps what they held.
namespace copying {
inline const Xbyak::Reg64 element = gpr::cursor;        ///< its number from the operand's base
inline const Xbyak::Reg64 value = gpr::scratch;         ///< elements on their way
inline const Xbyak::Reg64 bit = gpr::counter;           ///< where elements begin in their byte
inline const Xbyak::Reg64 count(Xbyak::Operand::RDX);   ///< elements of the group
inline const Xbyak::Reg64 next(Xbyak::Operand::R9);     ///< address of the next element's byte
inline const Xbyak::Reg64 last(Xbyak::Operand::R10);    ///< or what else bounds a copy
inline const Xbyak::Reg64 offset(Xbyak::Operand::R11);  ///< in the window
inline const Xbyak::Reg64 more(Xbyak::Operand::RBX);    ///< further bits
inline const Xbyak::Reg64 mask(Xbyak::Operand::R14);    ///< bits of elements, or others
inline const Xbyak::Reg64 before(Xbyak::Operand::R12);  ///< what a write replaces
inline const Xbyak::Reg64 first(Xbyak::Operand::R13);   ///< address in the window
inline constexpr std::array<int, Frame::borrowed_count> borrowed = {
    Xbyak::Operand::R9,  Xbyak::Operand::R10, Xbyak::Operand::R11, Xbyak::Operand::R12,
    Xbyak::Operand::R13, Xbyak::Operand::RBX, Xbyak::Operand::R14, Xbyak::Operand::RDX};
}  // namespace copying

/// Copies the elements from frame.group_begin() to frame.group_end() of the row to the window, or
/// (`in` is false) from there. Reads and writes no byte without a bit of these elements; other bits
/// of the bytes that it writes stay as they are. Overwrites gpr::cursor, gpr::scratch and
/// gpr::counter.
void emit_copy_bitwise(LaneEmitter& emitter, const Frame& frame, const WindowOperand& at, bool in);

/// Copies the element of a uniform operand to the window, whose byte is 0 before.
void emit_copy_one_bitwise(LaneEmitter& emitter, const Frame& frame, const WindowOperand& at);

}  // namespace castor::jit
