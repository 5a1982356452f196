// SPDX-License-Identifier: Apache-2.0
// Leaving out slices of a filter that are in the padding for a whole block.
#pragma once

#include <array>

#include "runtime/conv/dense_call.hpp"

namespace castor::detail {

/// First values of a tile's accumulators.
using TileStarts = std::array<int32_t, 64>;

/// The k steps of a block. Slices are positions of the filter along the outer axes, and those
/// before the first and after the last one inside the image take nothing but padding. There x is
/// its zero point a, so that (x - a)(w - b) is 0; what the kernel would add for it is a w.
class InnerSlices {
 public:
  /// All k steps where no slice can be left out.
  InnerSlices(const BoundDense& convolution, int64_t outer);

  bool leaves_padding_out() const { return first_ > 0 || end_ < count_; }

  /// A tile's first values without the slices that are left out; its arguments have them all, and
  /// `a` is as kernels have it.
  TileStarts starts_of(const jit::DenseArguments& arguments, int channels, int32_t a) const;
  /// Takes the slices out of a tile's arguments, which then point to `starts`.
  void leave_padding_out(int channels, const TileStarts& starts,
                         jit::DenseArguments& arguments) const;

 private:
  const jit::DensePlan& plan_;
  const int64_t count_;  ///< all k steps
  int64_t first_ = 0;
  int64_t end_;
};

}  // namespace castor::detail
