// SPDX-License-Identifier: Apache-2.0
#include "jit/tile_config.hpp"

#include <immintrin.h>

namespace castor::jit {

[[gnu::target("amx-tile")]] void TileScope::enter(const TileConfig& own) {
  _tile_storeconfig(callers_.data());
  _tile_loadconfig(own.bytes().data());
}

[[gnu::target("amx-tile")]] void TileScope::leave() {
  callers_[TileConfig::palette] != 0 ? _tile_loadconfig(callers_.data()) : _tile_release();
}

}  // namespace castor::jit
