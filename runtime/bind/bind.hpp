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

/// Whether an array has that many entries, and is not null unless it is empty.
template <class T>
bool is_array_of(size_t expected, std::span<T> given) {
  return given.size() == expected && (given.data() != nullptr || expected == 0);
}

/// Refuses an array that has not `expected` entries.
template <class T>
Status check_array(std::string_view what, std::span<T> given, size_t expected) {
  if (is_array_of(expected, given)) return {};
  if (Status status = check_count(what, given.size(), expected); !status) return status;
  return Error{ErrorCode::invalid_argument,
               fmt::format("no {} (null); the function has {}", what, expected)};
}

/// What Kernel::bind promises. Generates the code that these strides need and the cache lacks;
/// where executable memory is refused, the interpreter will run the kernel.
Result<std::shared_ptr<const BoundState>> bind_kernel(std::shared_ptr<const KernelState> kernel,
                                                      std::span<const Dims> input_shapes,
                                                      std::span<const Dims> strides,
                                                      const BindOptions& options = {});

}  // namespace castor::detail
