// SPDX-License-Identifier: Apache-2.0
// The functions of the Reduce benchmarks: reductions, pooling, and quantization by a tensor's or a
// row's own range.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cases/footprints.hpp"
#include "ir/shape/shape.hpp"

namespace castor::bench {

/// One function of one tensor %x, whose axes but the first are fixed.
struct ReductionRow {
  std::string_view name;
  ElementType element;
  std::array<int64_t, 3> inner;  ///< extents of the axes after the first, then 0
  std::string_view operations;   ///< that give the results
  std::string_view results;      ///< types, then names, as the text has them
  std::string_view names;
  int loads = 1;  ///< how often memory must be read: twice for a range of the whole tensor
};

/// One benchmark: a function of a tensor of that many bytes.
struct ReductionCell {
  ReductionRow row;
  Footprint footprint;
  bool by_two = false;  ///< by two threads; rows are of a tensor of three axes then

  /// "Reduce/min_max_f32/256KiB", "ReduceThreads/dynamic_quantize_bf16_i8_rows/256MiB".
  std::string name() const;
  Dims extents() const;
  std::string text() const;
};

std::vector<ReductionCell> reduction_cells();
std::vector<ReductionCell> reduction_cells_by_two();

}  // namespace castor::bench
