// SPDX-License-Identifier: Apache-2.0
// Window sums of a block: what each output pixel's receptive field sums up to, which zero points of
// weights are multiplied by.
#pragma once

#include "runtime/conv/dense_call.hpp"

namespace castor::detail {

/// The k steps, as byte offsets, and the weights with which a kernel sums packed input: windows of
/// it, or, where lanes are summed first, all k groups of a lane.
void set_sums_k_steps(BoundDense& bound);

/// Where the sums of lanes are that make a window's. Blocks are bound.
void set_sums_taps(BoundDense& bound);

/// I32 of scratch that the sums of a block's windows take besides themselves
/// (DenseScratch::summing). Blocks are bound.
int64_t window_sum_work(const BoundDense& bound);

/// Computes the window sums of some pixel tiles, as kernels read them. `zero_point`: that of all
/// weights, where these have one.
void sum_block(const BoundDense& convolution, const PackedBlock& block, const PixelTiles& tiles,
               int32_t zero_point);

}  // namespace castor::detail
