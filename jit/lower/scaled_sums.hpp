// SPDX-License-Identifier: Apache-2.0
// Quotients of sums of two scaled integers, of which only small integers are made: quantized
// tensors that are dequantized, added and quantized again.
#pragma once

#include <optional>

#include "jit/lane/builder.hpp"
#include "jit/lower/rounded_values.hpp"

namespace castor::jit {

struct FunctionFacts;

/// round_half_even((a * a_scale + b * b_scale) / divisor), saturated to a range; each operation is
/// rounded to f32.
struct ScaledSum {
  SmallRange a;
  SmallRange b;
  float a_scale = 1;
  float b_scale = 1;
  float divisor = 1;
  SmallRange result;
};

/// Factors of a and b, instead of scales and divisor.
struct SumFactors {
  float a = 1;
  float b = 1;
};

/// Factors for which a * factor + b * factor has the result of the sum for every a and b of their
/// ranges, where the product with b is rounded to f32, and then the sum. All pairs are tried, with
/// factors near a_scale / divisor and b_scale / divisor. Nothing where none was found, or there are
/// too many pairs. In a KernelFloatEnvironment.
std::optional<SumFactors> sum_factors(const ScaledSum& sum);

/// The operations of a scaled sum.
struct ScaledSumValues {
  ScaledSum sum;
  const Operation* addition;
  const Operation* multiplications[2];  ///< whose first operands are a and b, converted
};

/// The sum that a division of f32 divides, with its numbers; nothing where it is none.
std::optional<ScaledSumValues> find_scaled_sum(const FunctionFacts& facts,
                                               const Operation& division);

/// a * factors.a + b * factors.b for f32 lanes that are integers.
LaneId lower_scaled_sum(LaneBuilder& builder, LaneId a, LaneId b, const SumFactors& factors);

}  // namespace castor::jit
