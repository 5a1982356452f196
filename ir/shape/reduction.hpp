// SPDX-License-Identifier: Apache-2.0
// Reductions: their attributes, the axes that they fold, and their result's type.
// Source: ir/README.md, Reductions.
#pragma once

#include <optional>
#include <vector>

#include "ir/function.hpp"
#include "ir/support/export.hpp"

namespace castor {

/// The attributes of a reduction.
struct ReductionOptions {
  /// The operand's axes that are reduced; a negative one counts from the end. Absent: all axes.
  std::optional<std::vector<int64_t>> axes{};
  /// Whether the result keeps reduced axes, with extent 1; else it lacks them.
  bool keep_dims = false;
  /// For sums of integers: the type that elements are converted to, and that of the result. Absent:
  /// the operand's.
  std::optional<ElementType> accumulator{};
};

/// The options of a reduction. The error says which attribute does not fit, what was found and what
/// was expected.
CASTOR_API Result<ReductionOptions> reduction_options(const Operation& operation);
/// The attributes that say these options; defaults are not written.
CASTOR_API Attributes attributes_of(const ReductionOptions& options);

/// For each axis of an operand of that rank, whether a verified reduction folds it.
CASTOR_API std::vector<bool> reduced_axes(const Operation& operation, int rank);

/// The result's type.
CASTOR_API Result<TensorType> reduction_type(const Operation& operation, const TensorType& operand);
/// The result's extents, of a verified reduction.
CASTOR_API Dims reduced_extents(const Operation& operation, const Dims& operand);

/// How reduce_sum adds floats. Neighbouring reduced axes are one, in row-major order; from the last
/// to the first, each is summed for itself. In a list of up to `block` elements, element i is
/// added, in order, to the partial sum i mod `lanes`, which begins as +0; then partial sums j and
/// j + lanes / 2 are added for all j below lanes / 2, and so on until one is left. Where there are
/// more elements, the sums of blocks, the last of which may be short, are summed in the same way.
/// All additions are in f32, of f64 in f64, and round to nearest even.
struct SumTree {
  static constexpr int64_t block = 4096;
  int64_t lanes = 64;
};
constexpr SumTree sum_tree(ElementType type) {
  return {.lanes = type == ElementType::f64 ? 32 : 64};
}

}  // namespace castor
