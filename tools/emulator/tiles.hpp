// SPDX-License-Identifier: Apache-2.0
// Tile registers and their instructions: AMX-TILE and AMX-INT8.
#pragma once

#include <Zydis/Zydis.h>

#include <cstdint>

#include "tools/emulator/signal_frame.hpp"

namespace castor::emulator {

/// What kernels did with tiles, by all threads, so that tests compare it with plans.
struct TileCounts {
  uint64_t products = 0;
  uint64_t loads = 0;
  uint64_t stores = 0;
  uint64_t split_rows = 0;  ///< rows of loads and stores that cross a cache line
};
TileCounts tile_counts();

/// Carries out an instruction on the tiles of this thread, and does not skip it. False for any
/// other instruction, and where the CPU would raise #UD or #GP, or Linux has given no leave
/// (permission.hpp). Of memory exactly the bytes of
/// configured rows are touched.
bool carry_out_tile_instruction(const SignalFrame& frame,
                                const ZydisDecodedInstruction& instruction,
                                const ZydisDecodedOperand* operands);

}  // namespace castor::emulator
