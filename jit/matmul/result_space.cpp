// SPDX-License-Identifier: Apache-2.0
#include "jit/matmul/result_space.hpp"

#include "jit/plan/access_pattern.hpp"

namespace castor::jit {

ResultSpace likely_result_space(const LikelyMatmuls& matmuls, const Operation& convolution,
                                const Nest& epilogue, const BoundShapes& shapes) {
  const Dims& extents = shapes.values[epilogue.space];
  const auto matmul =
      convolution.op == OpKind::matmul_integer ? matmuls.of(convolution, shapes) : std::nullopt;
  ResultSpace space = {matmul ? matmul->result : extents, {}};
  for (const Dims& strides : likely_strides(epilogue, shapes)) {
    space.strides.push_back(matmul ? reshaped_strides(extents, strides, space.extents) : strides);
  }
  return space;
}

}  // namespace castor::jit
