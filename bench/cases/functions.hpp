// SPDX-License-Identifier: Apache-2.0
// The functions that the benchmark compiles and runs.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "ir/function.hpp"

namespace castor::bench {

/// One conversion of a tensor of that rank, every extent unknown, under the default options.
Result<FunctionPtr> conversion(ElementType from, ElementType to, int rank = 1);

/// Each parameter of rank `rank` converted on its own: as many results as pairs.
struct TypePair {
  ElementType from;
  ElementType to;
  /// "f32_u8".
  std::string name() const;
};
Result<FunctionPtr> conversions(std::span<const TypePair> pairs, int rank);

/// A chain of ten conversions of which no two can be merged.
Result<FunctionPtr> ten_conversions();

/// Ten elementwise ops, conversions among them, of features, a mean and a scale by channel.
Result<FunctionPtr> ten_elementwise_ops();

/// One conversion of a constant of that many bytes.
Result<FunctionPtr> converted_constant(size_t bytes);

}  // namespace castor::bench
