// SPDX-License-Identifier: Apache-2.0
// The functions of the Reduce benchmarks: reductions, and quantization by a tensor's or a row's own
// range.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/cases/footprints.hpp"
#include "ir/shape/shape.hpp"

namespace castor::bench {

/// One function of one tensor %x of floats, whose rows have a fixed length.
struct ReductionRow {
  std::string_view name;
  ElementType element;
  int64_t row_length;           ///< 0: the tensor has one axis
  std::string_view operations;  ///< that give the results
  std::string_view results;     ///< types, then names, as the text has them
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
