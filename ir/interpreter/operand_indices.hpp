// SPDX-License-Identifier: Apache-2.0
// Iterates over an operand's elements in the order of the result that it is broadcast to.
#pragma once

#include "ir/function.hpp"
#include "ir/interpreter/tensor.hpp"

namespace castor {

/// Hands out, for each element of the result in row-major order, the operand's element that
/// belongs to it.
class OperandIndices {
 public:
  /// `tensor` is operand `operand` of a verified elementwise operation or `broadcast`; it and
  /// the result's extents fit each other. Keeps a reference to the tensor.
  OperandIndices(const Operation& operation, size_t operand, const Tensor& tensor,
                 const Dims& result);

  /// The raw bits of the next element. To be called at most as often as the result has elements.
  uint64_t next();

 private:
  const std::vector<uint64_t>& elements_;
  Dims extents_;       ///< the result's
  Dims steps_;         ///< along each axis of the result; 0 where the operand repeats
  Dims blocks_;        ///< along each axis of the result, the elements that a step serves
  Dims at_;            ///< coordinates of the next element of the result
  int64_t index_ = 0;  ///< index of the operand's element that belongs to it
};

}  // namespace castor
