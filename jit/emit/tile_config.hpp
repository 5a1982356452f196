// SPDX-License-Identifier: Apache-2.0
// How a kernel that uses tile registers enters and leaves (jit/tile_config.hpp).
#pragma once

#include "jit/emit/assembler.hpp"
#include "jit/tile_config.hpp"

namespace castor::jit {

/// Keeps the caller's configuration in 64 bytes at `kept`, and loads the kernel's if it is another
/// one. Overwrites zmm0 and k1.
void emit_enter_tiles(Assembler& code, const TileConfig& config, const Xbyak::RegExp& kept);
/// Puts the caller's configuration back if it is another one. Overwrites zmm0 and k1.
void emit_leave_tiles(Assembler& code, const TileConfig& config, const Xbyak::RegExp& kept);

}  // namespace castor::jit
