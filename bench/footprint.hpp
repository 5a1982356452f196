// SPDX-License-Identifier: Apache-2.0
// The sizes at which conversions are measured, and where their tensors lie.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "bench/functions.hpp"

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

/// The tensors of one conversion, dense; the destination is aligned to 64.
struct Workspace {
  int64_t elements = 0;
  std::span<std::byte> source;
  std::span<std::byte> destination;
};

/// Room that place_tensors may need beyond the footprint.
inline constexpr size_t placement_slack = size_t{64} << 10;

/// Elements are rounded down to a multiple of this, so that neither castor's main loop (up to 256
/// elements) nor any plain kernel for the pair leaves a tail.
int64_t element_quantum(const TypePair& pair);

/// Places as many elements as the footprint allows. Where both tensors have equal strides the
/// destination lies, modulo 4096, just below the source: as far as can be from the false
/// dependence of a load on a store to an address with the same low 12 bits.
Workspace place_tensors(const TypePair& pair, size_t footprint_bytes, std::span<std::byte> memory);

/// The first `elements` elements of a workspace.
Workspace first_elements(const TypePair& pair, const Workspace& workspace, int64_t elements);

}  // namespace castor::bench
