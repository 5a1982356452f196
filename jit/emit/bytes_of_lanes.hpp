// SPDX-License-Identifier: Apache-2.0
// One byte of each 16-bit lane of two vectors, for encoders.
#pragma once

#include "jit/emit/bytes_apart.hpp"
#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

/// Which byte of a lane.
enum class BytePart : uint8_t { lower, upper };

/// What `emit_bytes_of_lanes` is controlled by: the order of a permutation, or which bytes are the
/// upper ones, whatever the part.
std::vector<uint8_t> control_of_bytes(BytesApart form, BytePart part);
/// to = one byte of each lane of `low` and `high`, in the form's order. `to` may be `low`.
void emit_bytes_of_lanes(Assembler& code, BytesApart form, BytePart part, const Xbyak::Zmm& to,
                         const Xbyak::Zmm& low, const Xbyak::Zmm& high, const Xbyak::Zmm& control);

/// Reserves the constants of `emit_bytes_of_lanes` for both parts.
void reserve_bytes_of_lanes(LaneEmitter& emitter, BytesApart form);
/// The same, in a register of the emitter's.
OwnedVector emit_bytes_of_lanes(LaneEmitter& emitter, const Xbyak::Xmm& low, const Xbyak::Xmm& high,
                                BytePart part, BytesApart form);
/// Reserves the constant of `emit_in_order`.
void reserve_order(LaneEmitter& emitter, BytesApart form);
/// Puts bytes that follow from bytes of lanes in the order of the lanes; where they are not yet,
/// the register may be under a mask in that order.
void emit_in_order(LaneEmitter& emitter, const Xbyak::Xmm& bytes, BytesApart form);

}  // namespace castor::jit
