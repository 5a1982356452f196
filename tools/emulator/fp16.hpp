// SPDX-License-Identifier: Apache-2.0
// What AVX512-FP16's instructions compute in each lane.
#pragma once

#include <Zydis/Zydis.h>

#include <cstdint>

#include "tools/emulator/half.hpp"

namespace castor::emulator {

/// One lane's operands, as bits, and how the instruction rounds.
struct Lane {
  uint64_t a;         ///< the first source, or the only one
  uint64_t b;         ///< the second source
  uint64_t old;       ///< the destination's own, where the instruction reads it
  uint8_t immediate;  ///< where the instruction has one
  RoundingMode rounding;
};

/// An instruction: the widths of its lanes in bits, and the function of one.
struct LaneInstruction {
  ZydisMnemonic mnemonic;
  int source_bits;
  int result_bits;  ///< 1: an opmask's
  int sources;
  uint64_t (*compute)(const Lane& lane);
};

/// Null for any other mnemonic.
const LaneInstruction* fp16_instruction(ZydisMnemonic mnemonic);

}  // namespace castor::emulator
