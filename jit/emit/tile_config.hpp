// SPDX-License-Identifier: Apache-2.0
// Tile registers: which rows and bytes of each a kernel uses (AMX), and how it leaves its caller's.
//
// Tile data is volatile, but a caller may count on its configuration: ONNX Runtime loads one for a
// thread and never again. So a kernel puts the caller's back. Loading one takes about 300 cycles,
// in which nothing else goes on; so kernels take over a caller's that is theirs already.
#pragma once

#include <array>
#include <cstdint>

#include "jit/emit/assembler.hpp"

namespace castor::jit {

/// The operand of ldtilecfg (Intel SDM, volume 1, 18.3).
class TileConfig {
 public:
  TileConfig() { bytes_[0] = 1; }  // the palette

  void set(int tile, int rows, int row_bytes) {
    const auto index = static_cast<size_t>(tile);
    bytes_[16 + 2 * index] = static_cast<uint8_t>(row_bytes);
    bytes_[48 + index] = static_cast<uint8_t>(rows);
  }
  const std::array<uint8_t, 64>& bytes() const { return bytes_; }

 private:
  std::array<uint8_t, 64> bytes_ = {};
};

/// Keeps the caller's configuration in 64 bytes at `kept`, and loads the kernel's if it is another
/// one. Overwrites zmm0 and k1.
void emit_enter_tiles(Assembler& code, const TileConfig& config, const Xbyak::RegExp& kept);
/// Loads the caller's configuration again if it is another one; without one, releases the tiles.
/// Overwrites zmm0 and k1.
void emit_leave_tiles(Assembler& code, const TileConfig& config, const Xbyak::RegExp& kept);

}  // namespace castor::jit
