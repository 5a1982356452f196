// SPDX-License-Identifier: Apache-2.0
// Drawing `matmul_integer`.
#pragma once

#include <optional>

#include "ir/shape/shape.hpp"
#include "tools/fuzz/random.hpp"

namespace castor::fuzz {

/// Extents of operands that go together.
struct DrawnMatmul {
  Dims a;
  Dims b;
  Dims a_zero;
  Dims b_zero;
};

/// Values that a product takes; for others constants are made, or there are none.
struct MatmulOperands {
  std::optional<size_t> b{};
  std::optional<size_t> a_zero{};
  std::optional<size_t> b_zero{};
};

/// A product with an a of these extents, whose rank is 1 at least.
DrawnMatmul draw_matmul(Random& random, const Dims& a);

/// Extents of an a: few rows as a rule, K of any remainder.
Dims draw_matrix(Random& random);

}  // namespace castor::fuzz
