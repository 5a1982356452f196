// SPDX-License-Identifier: Apache-2.0
// Bytes of 16-bit lanes for encoders.
#pragma once

#include "jit/emit/bytes_apart.hpp"
#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

/// Which byte of a lane.
enum class BytePart : uint8_t { lower, upper };

/// Reserves the constants of `emit_bytes_of_lanes` for both parts, and of `emit_in_order`.
void reserve_bytes_of_lanes(LaneEmitter& emitter, BytesApart form);
/// One byte of each 16-bit lane of two vectors.
OwnedVector emit_bytes_of_lanes(LaneEmitter& emitter, const Xbyak::Xmm& low, const Xbyak::Xmm& high,
                                BytePart part, BytesApart form);
/// Puts bytes that follow from bytes of lanes in the order of the lanes.
void emit_in_order(LaneEmitter& emitter, const Xbyak::Xmm& bytes, BytesApart form);

}  // namespace castor::jit
