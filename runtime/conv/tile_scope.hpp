// SPDX-License-Identifier: Apache-2.0
// The configuration of tile registers over several calls of a kernel (AMX): loading one takes about
// 300 cycles, as many as 19 products, which kernels leave out where it is theirs already.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>

namespace castor::detail {

/// Loads a configuration (the operand of ldtilecfg), and the caller's again at the end, as kernels
/// do; nothing where there is none. The process may use tiles.
class TileScope {
 public:
  using Configuration = std::array<uint8_t, 64>;

  explicit TileScope(const Configuration* own) : is_loaded_(own != nullptr) {
    if (is_loaded_) enter(*own);
  }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
  ~TileScope() {
    if (is_loaded_) leave();
  }

 private:
  [[gnu::target("amx-tile")]] void enter(const Configuration& own) {
    _tile_storeconfig(callers_.data());
    _tile_loadconfig(own.data());
  }
  [[gnu::target("amx-tile")]] void leave() {
    const bool has_tiles = callers_[0] != 0;  // the palette
    if (has_tiles) {
      _tile_loadconfig(callers_.data());
    } else {
      _tile_release();
    }
  }

  const bool is_loaded_;
  alignas(64) Configuration callers_;
};

}  // namespace castor::detail
