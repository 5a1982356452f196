// SPDX-License-Identifier: Apache-2.0
// The port model's tile unit: what instructions of AMX-TILE and AMX-INT8 occupy.
//
// Figures are of Granite Rapids, for rows in L1 that cross no cache line; no other core that is
// known here has the unit. What a product or a load costs is its rows, however few bytes these
// have; columns change nothing. Latencies are not modelled: results come about 50 cycles after a
// product, but products of one accumulator follow each other without waiting, row by row.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "jit/listing/decoder.hpp"
#include "jit/listing/port_core.hpp"

namespace castor::jit {

/// Rows of each tile register, as the first configuration of the code has them that stands among
/// its constants; 16, the most that there can be, where there is none.
std::array<int, 8> tile_rows_of(std::span<const DecodedInstruction> program,
                                const MachineCode& code);

/// Cycles of one instruction on tile data.
struct TileCycles {
  double product = 0;  ///< the unit takes
  LoadCycles load{};   ///< the load ports take
  double store = 0;    ///< the store ports take
};
/// Nothing for any other instruction, also for those that configure tiles: loops have none.
std::optional<TileCycles> tile_cycles(const DecodedInstruction& decoded,
                                      std::span<const int, 8> rows);

}  // namespace castor::jit
