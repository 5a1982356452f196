// SPDX-License-Identifier: Apache-2.0
// How long nests take one thread, roughly: whether it pays to split them. Estimates assume tensors
// in the caches, and are rather too small than too large.
#pragma once

#include <span>

#include "ir/shape/convolution.hpp"
#include "jit/plan/nest.hpp"

namespace castor::detail {

/// The time of a nest over `elements`, by code with this access to its operands, of `bytes` in all.
int64_t nest_ns(const jit::Nest& nest, std::span<const jit::Access> access,
                const jit::Target& target, double elements, int64_t bytes);

/// The time of a requantization by tables of bytes.
int64_t byte_tables_ns(const jit::Target& target, int64_t elements);

/// The time of a convolution, whatever its plan.
int64_t convolution_ns(const ConvolutionGeometry& geometry, const jit::Target& target);

}  // namespace castor::detail
