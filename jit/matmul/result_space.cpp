// SPDX-License-Identifier: Apache-2.0
#include "jit/matmul/result_space.hpp"

#include "jit/matmul/matmul_convolution.hpp"
#include "jit/plan/access_pattern.hpp"

namespace castor::jit {

ResultSpace likely_result_space(const Function& function, const Operation& convolution,
                                const Nest& epilogue, const BoundShapes& shapes) {
  const Dims& extents = shapes.values[epilogue.space];
  const auto matmul = convolution.op == OpKind::matmul_integer
                          ? likely_matmul(function, convolution, shapes)
                          : std::nullopt;
  ResultSpace space = {matmul ? matmul->result : extents, {}};
  for (const Dims& strides : likely_strides(epilogue, shapes)) {
    space.strides.push_back(matmul ? reshaped_strides(extents, strides, space.extents) : strides);
  }
  return space;
}

ConvolutionLayout likely_matmul_layout(const Function& function, const Operation& matmul,
                                       const BoundShapes& shapes) {
  const auto convolution = likely_matmul(function, matmul, shapes);
  return convolution ? convolution->geometry.layout : ConvolutionLayout::nchw;
}

}  // namespace castor::jit
