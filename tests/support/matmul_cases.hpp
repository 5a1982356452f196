// SPDX-License-Identifier: Apache-2.0
// Matrix products for tests: random ones, and what each must give, by an oracle that shares no code
// with castor.
#pragma once

#include <optional>
#include <random>
#include <vector>

#include "tests/support/interpreted.hpp"

namespace castor::test {

struct MatmulCase {
  Patterns a;
  Patterns b;
  std::optional<Patterns> a_zero_point{};
  std::optional<Patterns> b_zero_point{};
};

/// How a function has its operands.
struct MatmulForm {
  bool unknown_extents = false;       ///< parameters have unknown extents
  bool constant_b = false;            ///< else a parameter
  bool constant_zero_points = false;  ///< else parameters
};
FunctionPtr function_of(const MatmulCase& row, const MatmulForm& form = {});
/// Operands that are parameters of that function, in order.
std::vector<Patterns> parameters_of(const MatmulCase& row, const MatmulForm& form = {});

/// y, by the formula: each element is summed in 64 bits, then truncated.
Patterns direct_matmul(const MatmulCase& row);

/// A product of full-range data, at times all extremes, that draws everything: ranks, batches that
/// broadcast, zero points of every form.
MatmulCase random_matmul(std::mt19937_64& random);

}  // namespace castor::test
