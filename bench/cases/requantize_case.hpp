// SPDX-License-Identifier: Apache-2.0
// One requantization of the benchmark, and its function.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/cases/functions.hpp"
#include "ir/types/quantization.hpp"

namespace castor::bench {

/// What shares parameters; the other axis of the tensor has all other elements.
enum class Granularity : uint8_t { tensor, outer_axis, inner_axis };
/// A quantized format, or f32.
using Side = std::optional<QuantizedFormat>;

struct RequantizeCell {
  RequantizeArithmetic arithmetic;
  Side from;
  Side to;
  Granularity granularity;
  bool by_two = false;  ///< threads, in memory

  /// "Requantize/exact/sa8/fx8/tensor".
  std::string name() const;
  TypePair pair() const;
  /// The extents of tensors of that many elements, a multiple of 64.
  Dims extents(int64_t elements) const;
  /// Parameters are in the types: those of models, whose values of about -4 to 4 fill most of a
  /// container or, of 32 bits, which are accumulators, leave a few bits free.
  Result<FunctionPtr> function(const Dims& extents) const;
};

/// Every benchmark of a requantization by one thread.
std::vector<RequantizeCell> requantize_cells();

}  // namespace castor::bench
