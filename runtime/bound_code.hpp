// SPDX-License-Identifier: Apache-2.0
// The machine code that calls of a bound kernel go through.
#pragma once

#include <optional>

#include "runtime/state.hpp"

namespace castor::detail {

/// The tier of a function's code; nothing where it is interpreted.
inline std::optional<Tier> tier_of(const Compiled& compiled) {
  if (!compiled.interpreted_because.empty()) return std::nullopt;
  return compiled.target.tier;
}

/// Bytes of all code of a bound kernel; what several of its parts share counts once. Allocates
/// nothing.
size_t code_bytes(const BoundState& bound);

}  // namespace castor::detail
