// SPDX-License-Identifier: Apache-2.0
// Lowering of `look_up` where the table is a constant that code contains.
#pragma once

#include <cstddef>
#include <optional>

#include "jit/lower/lane_tensor.hpp"

namespace castor::jit {

/// The entries that codes of 4 or 8 bits stand for: `entries` has one of each code, dense and of
/// whole bytes. Nothing where reading the table from memory takes less time.
std::optional<LaneTensor> look_up_constant(LaneBuilder& builder, LaneTensor& codes,
                                           ElementType element, const std::byte* entries);

}  // namespace castor::jit
