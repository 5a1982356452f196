// SPDX-License-Identifier: Apache-2.0
// Granularity of quantization: how a scale and a zero point are aligned with what they quantize.
#pragma once

#include "ir/composition/definition.hpp"

namespace castor {

/// Whether the attributes go together, and the shape of operand 2, the zero point, with that of
/// operand 1, the scale.
Status check_granularity(const CompositionCall& call);

/// How that operand, the scale or the zero point, is broadcast to operand 0:
///   - a scalar serves the tensor;
///   - rank 1 is one entry for each index of `axis`, or, of one entry, a scalar;
///   - x's rank is an extent of 1 or x's along each axis, such as one entry per token;
///   - `block_size` along `axis`, or `block` along `axes`, is one entry for each block.
/// ONNX has all but the third, and blocks along one axis.
Result<BroadcastRule> granularity_of(const CompositionCall& call, size_t operand);

/// The value that goes along operand 0 by that rule: the operand, a scalar where operand 0 is one.
ValueId parameter_of(const CompositionCall& call, size_t operand);

}  // namespace castor
