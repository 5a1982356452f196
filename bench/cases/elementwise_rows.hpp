// SPDX-License-Identifier: Apache-2.0
// The functions of the Elementwise benchmarks, and the shapes that they are measured with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/cases/footprints.hpp"
#include "ir/shape/shape.hpp"

namespace castor::bench {

/// Extents of an operand that follow from the footprint stand as these two numbers.
inline constexpr int64_t rows = -1;     ///< as many as fill the footprint; only as first extent
inline constexpr int64_t columns = -2;  ///< the columns of a usual tensor

/// An input's layout in memory.
enum class Layout : uint8_t {
  dense,
  every_second,  ///< elements two apart, rows in proportion
  every_third,
  transposed,  ///< a matrix whose columns are contiguous
};

struct InputShape {
  Dims extents;
  Layout layout = Layout::dense;
};

struct ElementwiseRow {
  std::string name;
  std::string text;  ///< the function, which has one result, of as many rows as the inputs
  std::vector<InputShape> inputs;
  /// The function with rows of any length, where the text fixes a short one: its main loop is that
  /// of the row's function, and can be measured without what the code does once a row. Else null.
  std::shared_ptr<const ElementwiseRow> with_columns = nullptr;
};

/// Numbers in place of `rows` and `columns`.
struct Extents {
  int64_t rows = 1;
  int64_t columns = 1;
  Dims of(const Dims& extents) const;
};

/// Those of all footprints.
std::vector<ElementwiseRow> elementwise_rows();
/// Those of square matrices only, some of which are stored transposed.
std::vector<ElementwiseRow> square_rows();

/// Elementwise functions are measured at that size too: in the outermost cache.
inline constexpr Footprint outer_cache_footprint = {"16MiB", size_t{16} << 20, false};
inline constexpr std::array elementwise_footprints = {l1_footprint, l2_footprint,
                                                      outer_cache_footprint, memory_footprint};

}  // namespace castor::bench
