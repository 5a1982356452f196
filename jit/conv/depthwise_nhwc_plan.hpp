// SPDX-License-Identifier: Apache-2.0
// How a depthwise convolution is done where the channels of a pixel lie side by side: places along
// the rows, blocks of rows, and the kernel's form.
//
// Rows and columns of a filter that is dilated take every so-manieth row and column: each phase of
// outputs sees an undilated one. A unit of rows, or of columns, has the outputs of all phases, so
// that it is a part of the image without gaps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/convolution.hpp"
#include "jit/conv/depthwise_nhwc_kernel.hpp"

namespace castor::jit {

/// The plan of one geometry for one target.
struct DepthwiseNhwcPlan {
  static constexpr int lanes = DepthwiseNhwcForm::lanes;
  /// A unit of a single row has at most this many outputs of as many channels as a line of the
  /// cache has, so that pieces of the output need not be larger.
  static constexpr int64_t most_unit_outputs = 4096;
  static constexpr int64_t line_channels = 64;

  ConvolutionGeometry geometry;
  ConvolutionAxis rows;  ///< the last but one spatial axis; one row where there is none
  ConvolutionAxis columns;
  int64_t row_phases = 1;   ///< output rows from one to the next that share input rows
  int64_t row_step = 1;     ///< input rows from one that the filter takes to the next
  int64_t column_step = 1;  ///< likewise
  int64_t column_phases = 1;
  int block_outputs = 1;  ///< output rows of whole blocks
  DepthwiseNhwcForm form;
  std::vector<DepthwisePlace> places;  ///< of one row, by unit, then by phase

  /// Output rows of a unit of whole blocks.
  int64_t unit_rows() const { return block_outputs * row_phases; }
  /// Output columns of a unit; it has a place for each phase.
  int64_t unit_columns() const { return form.outputs * column_phases; }
  int64_t column_units() const { return (columns.output + unit_columns() - 1) / unit_columns(); }
  /// Channels that are done in one vector of 16, from the first one on: those of the last vector
  /// may have been done before.
  int64_t channel_vectors() const { return (geometry.channels + lanes - 1) / lanes; }
  /// Block of rows: `outputs` of them from a row on, phases apart.
  DepthwiseNhwcBlock block_at(int64_t row, int64_t outputs) const;
  size_t number_of(const DepthwiseNhwcBlock& block) const;
};

/// Plans a convolution that has output elements; nothing where the form of kernels does not serve
/// it. `epilogue` is what kernels are to apply, or null.
std::optional<DepthwiseNhwcPlan> plan_depthwise_nhwc(const ConvolutionGeometry& geometry,
                                                     bool x_is_signed, const Target& target,
                                                     const TileEpilogue* epilogue = nullptr);

/// The plan in words.
std::string print(const DepthwiseNhwcPlan& plan, const Target& target);

}  // namespace castor::jit
