// SPDX-License-Identifier: Apache-2.0
// Leaving out slices of a filter that are in the padding for a whole block.
#pragma once

#include <array>

#include "runtime/conv/dense_call.hpp"

namespace castor::detail {

/// First values of a tile's accumulators, where they are not those of the call.
using TileStarts = std::array<int32_t, 64>;

/// The k steps of a block. Slices are positions of the filter along the outer axes (PlaneAxes), and
/// those before the first and after the last one inside the image take nothing but padding. There x
/// is its zero point a, so that (x - a)(w - b) is 0; what the kernel would add for it is a w.
class InnerSlices {
 public:
  /// Those of all k steps where no slice can be left out.
  InnerSlices(const BoundDense& convolution, int64_t outer);

  /// Takes the other slices out of the arguments of a tile of that many channels; `weights` are its
  /// call's, `starts` what `arguments.start` then may point to.
  void leave_padding_out(const CallWeights& weights, int channels, TileStarts& starts,
                         jit::DenseArguments& arguments) const;

 private:
  const jit::DensePlan& plan_;
  int64_t first_ = 0;  ///< k steps
  int64_t end_;
};

}  // namespace castor::detail
