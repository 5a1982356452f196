// SPDX-License-Identifier: Apache-2.0
// Whether kernels can use tile registers: what the CPU and the operating system say of them.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/support/export.hpp"

namespace castor::jit {

/// What a machine says. All zero: its CPU has no tiles.
struct TileMachine {
  bool has_tiles = false;       ///< AMX-TILE: cpuid leaf 7
  uint32_t registers = 0;       ///< palette 1 has: cpuid leaf 0x1d
  uint32_t rows = 0;            ///< a register has
  uint32_t row_bytes = 0;       ///< a row has
  uint64_t saved_states = 0;    ///< XCR0: states that the operating system saves
  uint64_t offered_states = 0;  ///< states that processes may ask Linux for; none before 5.16
};

/// Asks the CPU, which must have AVX-512, and Linux. Asks for no permission.
CASTOR_API TileMachine detect_tiles();

/// Why kernels cannot use the tiles that the CPU has; empty where they can, or it has none.
CASTOR_API std::string_view tiles_unusable_because(const TileMachine& machine);

}  // namespace castor::jit
