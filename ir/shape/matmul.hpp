// SPDX-License-Identifier: Apache-2.0
// Integer matrix products: their extents and their result's type.
// Source: ONNX, MatMulInteger-10, and numpy.matmul; ir/README.md, Integer matrix product.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/function.hpp"
#include "ir/support/export.hpp"

namespace castor {

/// One operand of a product, with its zero points. Its lines are the rows of a, the columns of b.
struct MatmulSide {
  /// Extents along the batch axes of y, aligned right; 1 where the operand has no such axis.
  Dims batch;
  int64_t lines = 1;       ///< M of a, N of b
  bool is_vector = false;  ///< its rank is 1: it has one line, and y lacks the axis
  /// Extents of its zero points along the batch axes of y, then along the lines: the operand's, or
  /// 1, where the same ones serve all. All are 1 for one zero point, or none.
  Dims zero_points;
};

/// All numbers of one product: y[d, m, n] is the sum over k of
/// (a[d, m, k] - a_zero_point) * (b[d, k, n] - b_zero_point).
struct MatmulGeometry {
  MatmulSide a;
  MatmulSide b;
  Dims batch;         ///< the broadcast extents of both
  int64_t depth = 0;  ///< K

  /// The extents of y.
  CASTOR_API Dims output_extents() const;
};

/// The geometry for extents of the operands; of a zero point that is absent, null. The error names
/// the operands, the axis, what was found and what was expected.
CASTOR_API Result<MatmulGeometry> matmul_geometry(const Dims& a, const Dims& b,
                                                  const Dims* a_zero_point,
                                                  const Dims* b_zero_point);

/// Zero points, or what else a and b have by lines: one entry, one for each line of the operand (0:
/// a, 1: b), or, of the operand's rank, one for each line of each batch; along K there is one.
struct MatmulParameter {
  size_t operand;
  std::string_view name;
};
/// What is wrong with an operand of that shape, which needs an axis, or with the parameter's shape
/// for it, or nothing; of extents that are unknown nothing is.
std::optional<std::string> matmul_mistake(const MatmulParameter& parameter, const Shape& operand,
                                          const Shape& shape);

/// The result's type; four operands, the last two null where absent. Unknown extents: what they
/// must be is taken for granted, and checked in the same words where extents are bound.
CASTOR_API Result<TensorType> matmul_type(std::span<const TensorType* const> operands);

}  // namespace castor
