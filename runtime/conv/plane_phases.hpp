// SPDX-License-Identifier: Apache-2.0
// Where the planes of a block have data.
#pragma once

#include "runtime/conv/convolution.hpp"

namespace castor::detail {

/// Planes of one slice that have their data at the same places: those of one phase of the rows and
/// of the columns.
struct PhasePlanes {
  int64_t slice = 0;
  int64_t number = 0;     ///< among the planes of one dword
  int64_t pixel = 0;      ///< of the input: the slice's first
  int64_t input_row = 0;  ///< of the planes' first row; may be negative
  int64_t first_row = 0;  ///< with data
  int64_t end_row = 0;    ///< behind the last one with data
  int64_t begin = 0;      ///< column of the input, of a row's first dword; may be negative
  int64_t column = 0;     ///< of the first dword with data
  int64_t first = 0;      ///< dword of a row with data
  int64_t end = 0;        ///< behind the last
  bool has_data() const { return first_row < end_row && first < end; }
};

/// The planes of one phase of each axis.
PhasePlanes planes_of_phase(const jit::ConvPlan& plan, const BlockPlace& place, int64_t slice,
                            size_t row_phase, size_t column_phase);

}  // namespace castor::detail
