// SPDX-License-Identifier: Apache-2.0
// Convolutions for tests: random ones, and what each must give, by an oracle that shares no code
// with castor.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ir/shape/convolution.hpp"
#include "tests/support/interpreted.hpp"

namespace castor::test {

struct ConvolutionCase {
  ConvolutionOptions options;
  Patterns x;
  Patterns w;
  std::optional<Patterns> x_zero_point{};
  std::optional<Patterns> w_zero_point{};

  /// Operands that are there, in order.
  std::vector<Patterns> operands() const;
};

/// The operation on parameters of the operands' types; `unknown_extents`: of unknown extents.
FunctionPtr function_of(const ConvolutionCase& row, bool unknown_extents = false);

/// How a function has its operands.
struct ConvolutionForm {
  bool unknown_extents = false;       ///< parameters have unknown extents
  bool constant_weights = false;      ///< else a parameter
  bool constant_zero_points = false;  ///< else parameters
};
FunctionPtr function_of(const ConvolutionCase& row, const ConvolutionForm& form);
/// Operands that are parameters of that function, in order.
std::vector<Patterns> parameters_of(const ConvolutionCase& row, const ConvolutionForm& form);

/// y, by the formula: products are scattered from the input positions to the outputs that take
/// them, summed in 64 bits, then truncated.
Patterns direct_convolution(const ConvolutionCase& row);

/// A tensor of bytes: as a rule any, at times one byte everywhere or nearly so.
Patterns random_bytes(std::mt19937_64& random, ElementType type, const Dims& shape);

/// How large random convolutions are.
struct ConvolutionLimits {
  int max_spatial_axes = 4;
  int64_t max_products = 40'000;  ///< products per case
};

/// A convolution that draws every attribute; of full-range data, at times all extremes.
ConvolutionCase random_convolution(std::mt19937_64& random, const ConvolutionLimits& limits = {});

}  // namespace castor::test
