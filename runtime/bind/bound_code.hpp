// SPDX-License-Identifier: Apache-2.0
// The machine code that calls of a bound kernel go through.
#pragma once

#include <cstddef>

namespace castor::detail {

struct BoundState;

/// Bytes of all code of a bound kernel; what several of its parts share counts once. Allocates
/// nothing.
size_t code_bytes(const BoundState& bound);

}  // namespace castor::detail
