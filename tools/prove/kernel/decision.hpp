// SPDX-License-Identifier: Apache-2.0
// How those who prove kernels ask a solver.
#pragma once

#include <cstdint>
#include <functional>

#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// Whether a term of width 1 can be 1: no, yes, or not decided.
enum class Decision : uint8_t { never, possible, unknown };
using Decide = std::function<Decision(const Term& truth)>;

}  // namespace castor::prove
