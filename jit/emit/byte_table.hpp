// SPDX-License-Identifier: Apache-2.0
// Looks up bytes in tables that are kept in registers.
#pragma once

#include <functional>

#include "jit/emit/i32_table.hpp"
#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

/// Reserves registers for the table of a lane operation that looks up bytes or 32-bit lanes.
void reserve_look_up(LaneEmitter& emitter, const LaneInst& inst);
/// Reserves registers for the table of a sink that stores what `emit_look_up_elements` gives.
void reserve_element_table(LaneEmitter& emitter, const ByteTable& table, Narrowing look_up);

/// Looks up both bytes of each entry, into two registers; for tables of 6 bits or more, on AVX2 for
/// those that are nibble tables.
void reserve_table(LaneEmitter& emitter, const ByteTable& table);
void emit_look_up_both(LaneEmitter& emitter, const ByteTable& table, const Xbyak::Xmm& bytes,
                       const Xbyak::Xmm& low, const Xbyak::Xmm& high);

/// Looks up each byte of a whole vector: gives two vectors of 16-bit elements (look_up_16), four of
/// 32-bit elements with these upper halves (look_up_upper_16), or, of elements extended to 32 or 64
/// bits (look_up_i16), four or eight, in the order of the bytes.
std::vector<OwnedVector> emit_look_up_elements(LaneEmitter& emitter, const ByteTable& table,
                                               Narrowing look_up, int element_bits,
                                               const Xbyak::Xmm& bytes);

/// Looks up each byte, in a table of one byte an entry; `to` is another register than `bytes`, and
/// may be under a mask where the table has 6 or 7 bits (VBMI).
void reserve_byte_look_up(LaneEmitter& emitter, const ByteTable& table);
void emit_look_up_bytes(LaneEmitter& emitter, const ByteTable& table, const Xbyak::Xmm& bytes,
                        const Xbyak::Xmm& to);

/// Looks up each byte in a table of 256 bytes in four registers (VBMI). `quarter(i, fallback)`
/// gives the register of entries 64 * i to 64 * i + 63, which it may have to load into `fallback`.
using TableQuarter = std::function<Xbyak::Xmm(int quarter, OwnedVector& fallback)>;
void emit_permute_256(LaneEmitter& emitter, const TableQuarter& quarter, const Xbyak::Xmm& bytes,
                      const Xbyak::Xmm& to);

/// Lane operation.
void emit_look_up(LaneEmitter& emitter, const LaneInst& inst);

}  // namespace castor::jit
