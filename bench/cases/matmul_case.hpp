// SPDX-License-Identifier: Apache-2.0
// The matrix products of the benchmark, and their functions.
#pragma once

#include <string>
#include <vector>

#include "ir/function.hpp"

namespace castor::bench {

/// How operands are given, or what is computed from the i32 result.
enum class MatmulVariant : uint8_t {
  plain,            ///< b is a constant
  runtime_b,        ///< b is given at run time, as a dense [K, N]
  transposed_b,     ///< and stored as a dense [N, K]
  row_zero_points,  ///< b is a constant; zero points of a by row are given at run time
  requantize,       ///< b is a constant; times scales by row and by column, plus a bias: u8
};

/// A product of an a with one zero point, but for that variant; zero points of an unsigned b are by
/// column.
struct MatmulCase {
  int64_t rows = 1;
  int64_t depth = 1;
  int64_t columns = 1;
  ElementType a = ElementType::u8;
  ElementType b = ElementType::i8;
  MatmulVariant variant = MatmulVariant::plain;

  /// "MatMulInteger/128x768x3072/u8i8/runtime_b": rows, K, columns.
  std::string name() const;
  bool has_constant_b() const;
  bool has_row_zero_points() const { return variant == MatmulVariant::row_zero_points; }
  bool has_b_zero_points() const { return b == ElementType::u8 && has_constant_b(); }
  int64_t a_zero_point() const { return a == ElementType::i8 ? -7 : 121; }
  ElementType y() const;
  double products() const;
};

/// 1 to 512 rows by the layers of transformers: every combination of signs, and of u8 and i8 the
/// other variants.
std::vector<MatmulCase> matmul_cases();

/// Bytes of all patterns, which depend on their arguments alone.
struct MatmulWeights {
  std::vector<std::byte> b;            ///< [K, N]
  std::vector<std::byte> zero_points;  ///< by column; 0 where b has none
  std::vector<float> row_scales;
  std::vector<float> column_scales;
  std::vector<float> biases;  ///< by column
};
MatmulWeights make_weights(const MatmulCase& each);

/// Parameters: a, then b unless that is a constant, then zero points of a if they are by row.
Result<FunctionPtr> matmul_function(const MatmulCase& each, const MatmulWeights& weights);

}  // namespace castor::bench
