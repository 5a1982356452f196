// SPDX-License-Identifier: Apache-2.0
// Division that rounds up.
#pragma once

#include <cstdint>

namespace castor {

/// a / b rounded up, of an `a` that is not negative, however large, and a positive `b`.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace castor
