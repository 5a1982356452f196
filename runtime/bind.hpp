// SPDX-License-Identifier: Apache-2.0
// Binding: a kernel with shapes and strides becomes code and argument blocks ready to run.
#pragma once

#include <fmt/format.h>

#include "runtime/state.hpp"

namespace castor::detail {

/// Refuses a wrong number of shapes, strides or views.
inline Status check_count(std::string_view what, size_t found, size_t expected) {
  if (found == expected) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} {} given; the function has {}", found, what, expected)};
}

/// What Kernel::bind promises. Generates the code that these strides need and the cache lacks;
/// where executable memory is refused, the interpreter will run the kernel.
Result<std::shared_ptr<const BoundState>> bind_kernel(std::shared_ptr<const KernelState> kernel,
                                                      std::span<const Dims> input_shapes,
                                                      std::span<const Dims> strides,
                                                      const BindOptions& options = {});

}  // namespace castor::detail
