// SPDX-License-Identifier: Apache-2.0
// Binding: a kernel with shapes and strides becomes code and argument blocks ready to run.
#pragma once

#include <castor/castor.hpp>

#include <memory>
#include <optional>
#include <span>

namespace castor::detail {

/// What Kernel::bind promises. Generates the code that these strides need and the cache lacks;
/// where executable memory is refused, the interpreter will run the kernel. `block_bytes`: of a
/// block of rows (see RowBlocks), or as it suits the caches.
Result<std::shared_ptr<const BoundState>> bind_kernel(std::shared_ptr<const KernelState> kernel,
                                                      std::span<const Dims> input_shapes,
                                                      std::span<const Dims> strides,
                                                      const BindOptions& options = {},
                                                      std::optional<int64_t> block_bytes = {});

}  // namespace castor::detail
