// SPDX-License-Identifier: Apache-2.0
// Tile registers: which rows and bytes of each are used (AMX), and the caller's rights to them.
//
// Tile data is volatile, but a caller may count on its configuration: ONNX Runtime loads one for a
// thread and never again. So castor puts the caller's back, or releases the tiles where it had
// none. Loading one takes about 300 cycles, as many as 19 products, in which nothing else goes on;
// so kernels take over a configuration that is theirs already (jit/emit/tile_config.hpp), and a
// TileScope loads it for several of their calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace castor::jit {

/// The operand of ldtilecfg and sttilecfg (Intel SDM, volume 1, 18.3).
class TileConfig {
 public:
  using Bytes = std::array<uint8_t, 64>;
  static constexpr size_t palette = 0;  ///< the byte that is 0 where there is no configuration

  TileConfig() { bytes_[palette] = 1; }

  void set(int tile, int rows, int row_bytes) {
    const auto index = static_cast<size_t>(tile);
    bytes_[16 + 2 * index] = static_cast<uint8_t>(row_bytes);
    bytes_[48 + index] = static_cast<uint8_t>(rows);
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_ = {};
};

/// Loads a configuration, and puts the caller's back at the end; nothing where it is null. The
/// process may use tiles.
class TileScope {
 public:
  explicit TileScope(const TileConfig* own) : is_loaded_(own != nullptr) {
    if (is_loaded_) enter(*own);
  }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
  ~TileScope() {
    if (is_loaded_) leave();
  }

 private:
  void enter(const TileConfig& own);
  void leave();

  const bool is_loaded_;
  alignas(64) TileConfig::Bytes callers_;
};

}  // namespace castor::jit
