// SPDX-License-Identifier: Apache-2.0
// One spatial axis of a convolution whose numbers are as large as numbers get.
#pragma once

#include "ir/shape/convolution.hpp"
#include "tools/fuzz/random.hpp"

namespace castor::fuzz {

/// A number from 1 to `greatest`: small, the greatest, a power of two or next to one.
int64_t draw_magnitude(Random& random, int64_t greatest);

/// An axis of that input with at most four outputs more than positions of the input. Strides,
/// dilations and pads are of any magnitude; as a rule pads are such that a tap meets the input. At
/// times the kernel exceeds the padded input, and there is no output.
ConvolutionAxis draw_extreme_axis(Random& random, int64_t input);

}  // namespace castor::fuzz
