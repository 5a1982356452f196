// SPDX-License-Identifier: Apache-2.0
// Drawing the parameters of quantized types.
#pragma once

#include "tools/fuzz/generate_requantize.hpp"

namespace castor::fuzz {

/// Ranges of both sides' parameters: such that results are within their containers, or as far away
/// as can be, or some of each.
void draw_ranges(Random& random, DrawnSide& from, DrawnSide& to);

/// The quantization of one side of that many slices, null for f32.
QuantizationPtr draw_quantization(Random& random, const DrawnSide& side, int64_t slices);

/// Elements from the range.
std::vector<uint64_t> draw_elements(Random& random, const ParameterOperand& operand,
                                    int64_t entries);

}  // namespace castor::fuzz
