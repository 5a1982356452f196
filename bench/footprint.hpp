// SPDX-License-Identifier: Apache-2.0
// The memory of the tensors of measured conversions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "bench/cases/footprints.hpp"
#include "bench/cases/functions.hpp"

namespace castor::bench {

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

/// Puts as many elements into memory as the footprint allows. Where both tensors have equal strides
/// the destination starts, modulo 4096, just below the source: as far as can be from the false
/// dependence of a load on a store to an address with the same low 12 bits.
Workspace place_tensors(const TypePair& pair, size_t footprint_bytes, std::span<std::byte> memory);

/// The first `elements` elements of a workspace.
Workspace first_elements(const TypePair& pair, const Workspace& workspace, int64_t elements);

}  // namespace castor::bench
