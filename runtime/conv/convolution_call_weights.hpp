// SPDX-License-Identifier: Apache-2.0
// What one call of a convolution has of its weights: packed dwords, zero points, and the values
// that sums begin with.
#pragma once

#include "runtime/conv/dense.hpp"

namespace castor::detail {

/// Operands of a call that do not change from block to block.
struct WeightOperands {
  const std::byte* w = nullptr;
  const std::byte* w_zero_points = nullptr;  ///< null where there are none
  int32_t x_zero_point = 0;                  ///< as x has it
};

/// Behind `prepare` several tasks may share it, each with a scratch of its own; `scratch` is where
/// the convolution's begins.
class CallWeights {
 public:
  CallWeights(const BoundDense& convolution, const WeightOperands& operands, std::byte* scratch)
      : convolution_(convolution), operands_(operands), scratch_(scratch) {}

  /// What all tasks read. Before any of them.
  void prepare();
  /// What a task needs of a group's tile, before its kernel runs.
  void prepare_tile(int64_t group, int64_t tile, std::byte* scratch) const;

  /// Packed weights of a tile, and the first values and zero points of output channels from one on.
  const std::byte* packed(int64_t group, int64_t tile, std::byte* scratch) const;
  const int32_t* starts(int64_t channel, std::byte* scratch) const;
  const int32_t* zero_points(int64_t channel) const;

 private:
  int32_t zero_point_of(int32_t stored) const;
  void set_starts(int64_t first, std::span<const int32_t> sums, int32_t* starts) const;

  const BoundDense& convolution_;
  const WeightOperands operands_;
  std::byte* scratch_;  ///< of the call
  DenseWeights<const int32_t> packed_;
};

/// An address from which dwords are counted that need not begin there.
inline int32_t* counted_back(int32_t* from, int64_t dwords) {
  return reinterpret_cast<int32_t*>(reinterpret_cast<intptr_t>(from) - 4 * dwords);
}

}  // namespace castor::detail
