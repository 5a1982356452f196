// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/plane_phases.hpp"

#include <algorithm>

#include "ir/support/integer_math.hpp"

namespace castor::detail {

PhasePlanes planes_of_phase(const jit::ConvPlan& plan, const BlockPlace& place, int64_t slice,
                            size_t row_phase, size_t column_phase) {
  const ConvolutionAxis& columns = plan.columns;
  const ConvolutionAxis& rows = plan.rows;
  const std::optional<int64_t> outer = outer_position(plan.geometry, place.outer, slice);
  const int64_t height = place.block.rows + plan.row_phases.max_shift;
  const int64_t width = place.block.columns + plan.column_phases.max_shift;
  PhasePlanes of;
  of.slice = slice;
  of.number = static_cast<int64_t>(row_phase * plan.column_phases.phases.size() + column_phase);
  if (!outer) return of;
  of.pixel = *outer * rows.input * columns.input;
  of.input_row = place.row * rows.stride + plan.row_phases.phases[row_phase] - rows.pad_begin;
  const int64_t begin =
      place.column * columns.stride + plan.column_phases.phases[column_phase] - columns.pad_begin;
  // Entries in front of the first at that position of an axis or behind.
  const auto entries = [](int64_t from, int64_t to, int64_t stride, int64_t max) {
    const int64_t distance = std::max<int64_t>(to - from, 0);
    return std::min(stride == 1 ? distance : ceil_div(distance, stride), max);  // divisions cost
  };
  of.first_row = entries(of.input_row, 0, rows.stride, height);
  of.end_row = std::max(entries(of.input_row, rows.input, rows.stride, height), of.first_row);
  of.first = entries(begin, 0, columns.stride, width);
  of.end = std::max(entries(begin, columns.input, columns.stride, width), of.first);
  of.begin = begin;
  // Without data that is no position, and may exceed all numbers.
  of.column = wrapped_sum(begin, wrapped_product(of.first, columns.stride));
  return of;
}

}  // namespace castor::detail
