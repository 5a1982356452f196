// SPDX-License-Identifier: Apache-2.0
// What binding and running of convolutions share.
#pragma once

#include "runtime/conv/convolution.hpp"

namespace castor::detail {

/// Zero points by output channel, as the kernel's signed weights have them: unsigned ones less 128.
/// Without VNNI as they are. `zero_points` is null where there are none.
void set_weight_zero_points(const BoundConvolution& convolution, const std::byte* zero_points,
                            std::span<int32_t> to);

/// The parts of packed weights that begin at `data`.
template <class Int>
DenseWeights<Int> packed_weights(const jit::DensePlan& plan, Int* data) {
  const size_t dwords = packed_dwords(plan);
  return {{data, dwords}, {data + dwords, static_cast<size_t>(plan.geometry.out_channels)}};
}

/// Whether there is any output.
bool has_work(const ConvolutionGeometry& geometry);

}  // namespace castor::detail
