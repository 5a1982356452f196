// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace castor::detail {

/// to[column * rows + row] = from[row * columns + column], both dense.
void transpose_bytes(const std::byte* from, int64_t rows, int64_t columns, std::byte* to);

}  // namespace castor::detail
