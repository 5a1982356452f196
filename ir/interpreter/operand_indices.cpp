// SPDX-License-Identifier: Apache-2.0
#include "ir/interpreter/operand_indices.hpp"

#include "ir/shape/broadcast.hpp"

namespace castor {

OperandIndices::OperandIndices(const Operation& operation, size_t operand, const Tensor& tensor,
                               const Dims& result)
    : elements_(tensor.elements),
      extents_(result),
      steps_(Dims::filled(result.rank(), 0)),
      blocks_(Dims::filled(result.rank(), 1)),
      at_(Dims::filled(result.rank(), 0)) {
  const int rank = tensor.shape.rank();
  const Dims along = axes_along_result(operation, operand, rank, result.rank());
  const Dims blocks = blocks_along_result(operation, operand, rank, result.rank());
  const Dims strides = dense_strides(tensor.shape);
  for (int axis = 0; axis < rank; ++axis) {
    if (along[axis] >= 0 && tensor.shape[axis] != 1) {
      steps_[static_cast<int>(along[axis])] = strides[axis];
      blocks_[static_cast<int>(along[axis])] = blocks[axis];
    }
  }
}

uint64_t OperandIndices::next() {
  const uint64_t bits = elements_[static_cast<size_t>(index_)];
  for (int axis = extents_.rank() - 1; axis >= 0; --axis) {
    if (++at_[axis] < extents_[axis]) {
      if (at_[axis] % blocks_[axis] == 0) index_ += steps_[axis];
      break;
    }
    index_ -= (extents_[axis] - 1) / blocks_[axis] * steps_[axis];  // carry into the axis before
    at_[axis] = 0;
  }
  return bits;
}

}  // namespace castor
