// SPDX-License-Identifier: Apache-2.0
// Matrix products as convolutions of a filter of one position.
//
// Either operand can be the image, whose channels are K; the other one is the weights.
//   a: channels-last. Rows of a are pixels, columns of b output channels: weights are b transposed,
//      their zero points those of b by column. Batches of a are more rows.
//   b: channels-first. Columns of b are pixels, rows of a output channels: weights are a, their
//      zero points those of a by row. Batches of both are groups, batches of b alone images, and
//      batches of a alone more rows. Nothing is transposed.
// By dot kernels, each image a of a batch is multiplied by weights of its own, which are a b that
// is stored as [N, K]. The image has one zero point. y is stored as the convolution's result is.
#pragma once

#include <optional>
#include <vector>

#include "ir/shape/convolution.hpp"
#include "ir/shape/matmul.hpp"
#include "ir/verify/infer.hpp"
#include "jit/target.hpp"

namespace castor::jit {

enum class MatmulImage : uint8_t { a, b };

/// What decides which operand is the image, besides extents.
struct MatmulStorage {
  bool b_is_constant = false;    ///< with its zero points: b transposed is packed once
  bool b_is_transposed = false;  ///< b is stored as a dense [N, K]
};

/// One product as a convolution.
struct MatmulConvolution {
  MatmulImage image = MatmulImage::b;
  ConvolutionGeometry geometry{};
  /// Batch extents that the operands are read with, of y's batch rank; where they exceed an
  /// operand's own, it is broadcast to them first.
  Dims a_batch;
  Dims b_batch;
  Dims result{};  ///< y's extents as the convolution has them: the batch, channels and pixels
};

/// The product as a convolution. Nothing where it is none: b has zero points by column, and a has
/// some by row or b is several matrices (see split_zero_points).
std::optional<MatmulConvolution> matmul_convolution(const MatmulGeometry& matmul,
                                                    const MatmulStorage& storage);

/// The product of each matrix of a batch and a transposed b of its own, by the target's dot
/// kernels: b is not copied, a where it is broadcast or not dense. Nothing where b is a constant,
/// broadcast or no dense [N, K], where an operand has several zero points or a is a vector, where
/// there is no such kernel, or enough rows to repay a copy of b.
std::optional<MatmulConvolution> matmul_by_image(const MatmulGeometry& matmul,
                                                 const MatmulStorage& storage,
                                                 const Target& target);

/// The convolutions that the products of one function most likely become: its tensors are dense.
class LikelyMatmuls {
 public:
  explicit LikelyMatmuls(const Function& function);

  /// For the extents of all values.
  std::optional<MatmulConvolution> of(const Operation& matmul, const BoundShapes& shapes) const;

 private:
  std::vector<bool> is_constant_;  ///< by value, whether it is a constant or a reshape of one
};

}  // namespace castor::jit
