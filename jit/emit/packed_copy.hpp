// SPDX-License-Identifier: Apache-2.0
// Sub-byte elements that a nest stores as they are: their bytes are copied, and never unpacked.
#pragma once

#include "jit/emit/frame.hpp"
#include "jit/emit/lane_emitter.hpp"
#include "jit/emit/nest_loops.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {

/// Whether all that the nest does is to store the bits of consecutive sub-byte elements as elements
/// of the same storage, from a byte's first bit on.
bool copies_packed(const Nest& nest, const NestForm& form);

/// Elements that an iteration of the copy does: those of three or four vectors of whole bytes.
int packed_copy_elements(const Nest& nest, const Target& target);

/// Emits a loop that copies, from gpr::index on, while another iteration ends at gpr::extent or
/// before.
void emit_packed_copy(const Nest& nest, Stores stores, LaneEmitter& emitter, const Frame& frame,
                      NestLoops& loops);

}  // namespace castor::jit
