// SPDX-License-Identifier: Apache-2.0
// One elementwise function of the benchmark, and the extents that it is measured with.
#pragma once

#include <string>
#include <vector>

#include "bench/cases/elementwise_rows.hpp"
#include "bench/cases/footprints.hpp"
#include "ir/function.hpp"

namespace castor::bench {

/// A row of the table with its function read.
struct ElementwiseCase {
  ElementwiseRow row;
  FunctionPtr function;

  static Result<ElementwiseCase> read(const ElementwiseRow& row);
  Result<Dims> result_shape(const Extents& extents) const;
  ElementType input_type(size_t input) const;
  ElementType result_type() const;
  bool has_columns() const;
};

/// Strides, in elements, of a tensor that is laid out so.
Dims strides_of(const Dims& extents, Layout layout);
/// Bytes from the first element of an input to the end of the last.
size_t span_bytes(const ElementwiseCase& each, size_t input, const Extents& extents);

/// The most rows of which all operands together take no more bytes.
Result<Extents> extents_for(const ElementwiseCase& each, size_t footprint_bytes,
                            int64_t column_count);

/// One benchmark: a function at a footprint, or with square tensors.
struct ElementwiseCell {
  ElementwiseRow row;
  Footprint footprint;  ///< whose memory holds the tensors
  int64_t square = 0;   ///< rows and columns; 0: as many as the footprint asks for

  /// "Elementwise/add_f32_same/16KiB".
  std::string name() const;
  bool in_l1() const { return footprint.bytes == l1_footprint.bytes; }
  /// Extents of `each`, which was read from the row. Fails (internal) where no row fits.
  Result<Extents> extents(const ElementwiseCase& each) const;
};

/// Every benchmark of an elementwise function.
std::vector<ElementwiseCell> elementwise_cells();

}  // namespace castor::bench
