// SPDX-License-Identifier: Apache-2.0
// How a depthwise or grouped convolution is done in NHWC: vectors of output channels, places along
// the rows, blocks of rows, and the kernel's form.
//
// Rows and columns of a filter that is dilated take every so-manieth row and column: each phase of
// outputs sees an undilated one. A unit of rows, or of columns, has the outputs of all phases, so
// that it is a part of the image without gaps. Along outer spatial axes there is a pass for each
// position of the filter, which adds to the one before.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jit/conv/problem.hpp"
#include "jit/conv/sliding/sliding_spec.hpp"

namespace castor::jit {

/// The plan of one geometry for one target. Lanes are output channels.
struct GroupedNhwcPlan : SlidingPlan {
  /// A unit of a single row has at most this many outputs of as many channels as a line of the
  /// cache has, so that pieces of the output need not be larger.
  static constexpr int64_t max_unit_outputs = 4096;
  static constexpr int64_t line_channels = 64;

  int64_t row_phases = 1;   ///< output rows from one to the next that share input rows
  int64_t row_step = 1;     ///< input rows from one that the filter takes to the next
  int64_t column_step = 1;  ///< the same of columns
  int64_t column_phases = 1;
  int held = 0;           ///< channels of a group that a quad holds, if they are several
  bool overlaps = false;  ///< the last vector has channels of the one before as well
  GroupedNhwcForm form;
  std::vector<NhwcVector> vectors;  ///< without starts
  std::vector<NhwcPlace> places;    ///< of one row, by unit, then by phase

  /// Output rows of a unit of whole blocks.
  int64_t unit_rows() const { return block_outputs * row_phases; }
  /// Output columns of a unit; it has a place for each phase.
  int64_t unit_columns() const { return form.outputs * column_phases; }
  int64_t column_units() const { return (columns.output + unit_columns() - 1) / unit_columns(); }
  /// Block of rows: `outputs` of them from a row on, phases apart.
  SlidingBlock block_at(int64_t row, int64_t outputs) const;
  size_t number_of(const SlidingBlock& block) const;
};

/// Plans a convolution that has output elements and several groups, or one channel; nothing where
/// the form of kernels does not serve it. `epilogue` is what kernels are to apply, or null.
std::optional<GroupedNhwcPlan> plan_grouped_nhwc(const ConvolutionGeometry& geometry,
                                                 bool x_is_signed, const Target& target,
                                                 const TileEpilogue* epilogue = nullptr);

/// The plan in words.
std::string print(const GroupedNhwcPlan& plan, const Target& target);

}  // namespace castor::jit
