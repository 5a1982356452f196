// SPDX-License-Identifier: Apache-2.0
// Drawing `conv_integer`.
#pragma once

#include <optional>

#include "ir/shape/convolution.hpp"
#include "tools/fuzz/cells.hpp"
#include "tools/fuzz/program.hpp"
#include "tools/fuzz/random.hpp"

namespace castor::fuzz {

/// Extents of x and w, and attributes that go with them.
struct DrawnConvolution {
  Dims x;
  Dims w;
  ConvolutionOptions options;
};

/// Values that a convolution takes; for others constants are made, or there are none.
struct ConvolutionOperands {
  std::optional<size_t> w{};
  std::optional<size_t> x_zero{};
  std::optional<size_t> w_zero{};
};

/// A convolution of x, whose rank is 3 at least. Where x has axes without elements it may be one
/// that is refused.
DrawnConvolution draw_convolution(Random& random, const Dims& x);

/// An image for one: a few channels as a rule, at times many on few positions.
Dims draw_image(Random& random);

/// A cell of the coverage, as a rule of epilogues that run slice by slice.
EpilogueCell draw_epilogue_cell(Random& random);

/// A function around a convolution or a matrix product, with inputs made for it.
void draw_convolutions(Random& random, Program& program);

}  // namespace castor::fuzz
