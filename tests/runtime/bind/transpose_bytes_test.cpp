// SPDX-License-Identifier: Apache-2.0
// Transposition of byte matrices: whole squares of registers, and what is less
// than one at the ends.
#include "runtime/bind/transpose_bytes.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace castor::detail {
namespace {

TEST(TransposeBytes, OfEveryRemainder) {
  constexpr int64_t extents[] = {0, 1, 2, 15, 16, 17, 31, 32, 63, 64, 65, 80, 129};
  for (const int64_t rows : extents) {
    for (const int64_t columns : extents) {
      std::vector<std::byte> from(static_cast<size_t>(rows * columns));
      for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 197 + i / 256);
      const std::byte untouched{0xa5};
      std::vector<std::byte> to(from.size() + 16, untouched);
      transpose_bytes(from.data(), rows, columns, to.data());
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t column = 0; column < columns; ++column) {
          ASSERT_EQ(to[static_cast<size_t>(column * rows + row)],
                    from[static_cast<size_t>(row * columns + column)])
              << rows << "x" << columns << " at " << row << ", " << column;
        }
      }
      for (size_t i = from.size(); i < to.size(); ++i) ASSERT_EQ(to[i], untouched);
    }
  }
}

}  // namespace
}  // namespace castor::detail
