// SPDX-License-Identifier: Apache-2.0
// The sizes at which functions are measured.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace castor::bench {

/// Bytes of source and destination together.
struct Footprint {
  std::string_view name;
  size_t bytes;
  bool in_memory;  ///< exceeds every cache
};

inline constexpr Footprint l1_footprint = {"16KiB", size_t{16} << 10, false};
inline constexpr Footprint l2_footprint = {"256KiB", size_t{256} << 10, false};
inline constexpr Footprint memory_footprint = {"256MiB", size_t{256} << 20, true};
inline constexpr std::array footprints = {l1_footprint, l2_footprint, memory_footprint};
/// Still in L1: for main loops of which too few iterations fit into l1_footprint.
inline constexpr Footprint large_l1_footprint = {"24KiB", size_t{24} << 10, false};

}  // namespace castor::bench
