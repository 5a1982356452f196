// SPDX-License-Identifier: Apache-2.0
// Convolutions and elementwise chains after them, for tests: each layer with each chain is a
// function.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tests/support/function_case.hpp"

namespace castor::test {

/// A convolution whose attributes keep the extents of images, or divide them by the stride.
struct Layer {
  const char* name;
  Dims image;  ///< [N, C, d...]
  int64_t outputs;
  Dims kernel;
  const char* attributes = "";
  int64_t group = 1;
  int64_t stride = 1;  ///< what the attributes say

  /// The extents of y.
  Dims output(bool nhwc) const;
};

/// Shapes of parameters: c: by channel, n: by image, i: by image and channel, f: full, b: full
/// without the batch, s: scalar, p: by pixel, w: by column.
struct Parameter {
  char shape;
  ElementType type;
};

struct Chain {
  const char* name;
  std::vector<Parameter> parameters;  ///< %a, %b, ...
  const char* body;                   ///< from %y to the results
  std::vector<ElementType> results;   ///< %r, %q
  int aligned = 1;                    ///< elements of a byte, where some are smaller
  bool is_fused = true;
};

std::span<const Layer> epilogue_layers();
const Layer& epilogue_layer(std::string_view name);
std::span<const Chain> epilogue_chains();

/// How a case is built.
struct Build {
  bool nhwc = false;
  bool dynamic = false;
};

/// A layer and a chain after it.
FunctionCase case_of(const Layer& layer, const Chain& chain, const Build& build);

/// Whether a convolution and what follows it are one nest.
bool is_fused(const BoundKernel& bound);

}  // namespace castor::test
