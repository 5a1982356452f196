// SPDX-License-Identifier: Apache-2.0
// What names count for in CompileLimits.
#pragma once

#include <cstddef>
#include <string>

#include "ir/function.hpp"

namespace castor {

/// Bytes of a value's name and of those of its unknown extents, which every value has its own copy
/// of.
inline size_t name_bytes_of(const std::string& name, const TensorType& type) {
  size_t bytes = name.size();
  for (const Dim& dim : type.shape) bytes += dim.name.size();
  return bytes;
}

}  // namespace castor
