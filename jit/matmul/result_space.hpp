// SPDX-License-Identifier: Apache-2.0
// The result that an epilogue takes, as the convolution that computes it has it.
#pragma once

#include <optional>
#include <vector>

#include "ir/verify/infer.hpp"
#include "jit/matmul/matmul_convolution.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {

/// Extents of the result, and strides of an epilogue's operands over them.
struct ResultSpace {
  Dims extents;
  std::vector<std::optional<Dims>> strides;  ///< nothing where no strides can say so
};

/// Those of an epilogue of that `conv_integer` or `matmul_integer` if tensors are dense.
ResultSpace likely_result_space(const LikelyMatmuls& matmuls, const Operation& convolution,
                                const Nest& epilogue, const BoundShapes& shapes);

}  // namespace castor::jit
