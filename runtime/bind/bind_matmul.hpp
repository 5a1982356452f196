// SPDX-License-Identifier: Apache-2.0
// Binding of matrix products, each as one convolution (see jit/matmul/matmul_convolution.hpp).
#pragma once

#include <functional>

#include "jit/matmul/matmul_convolution.hpp"
#include "runtime/bind/convolution_tensors.hpp"
#include "runtime/bind/value_origins.hpp"

namespace castor::detail {

/// Adds a step that copies a tensor to another of the same extents.
using BindTensorCopy =
    std::function<Status(const TensorOrigin& from, const TensorOrigin& to, ElementType element)>;

/// The convolution that a `matmul_integer` becomes with these origins of its operands.
Result<jit::MatmulConvolution> bind_matmul(const Operation& matmul, const Function& function,
                                           ValueOrigins& origins, const jit::Target& target);

/// Adds the operands of that convolution to a step that has none. What the convolution cannot read
/// as it is stored is copied first: strided operands, batches that are broadcast, and b where its
/// transpose is the weights and not known or stored as such. Throws std::bad_alloc.
Result<ConvolutionTensors> add_matmul_tensors(const Operation& matmul, const Function& function,
                                              const jit::MatmulConvolution& convolution,
                                              ValueOrigins& origins, const BindTensorCopy& copy,
                                              ConvolutionStep& step);

}  // namespace castor::detail
