// SPDX-License-Identifier: Apache-2.0
// Where tensors and copies are stored in a call's scratch.
#pragma once

#include <cstddef>
#include <map>

namespace castor::detail {

/// Allocates in the order in which nests run; memory that is given back is used again.
class ScratchPlan {
 public:
  /// The offset of that many bytes, and of `padding` more after them that may be read.
  /// Throws std::bad_alloc where sizes overflow.
  size_t take(size_t bytes);
  /// The memory at that offset is free for whatever runs later.
  void give_back(size_t offset);
  /// Bytes of the whole scratch.
  size_t bytes() const { return end_; }

 private:
  static constexpr size_t padding = 64;

  std::map<size_t, size_t> taken_;      // sizes by offset
  std::multimap<size_t, size_t> free_;  // offsets by size
  size_t end_ = 0;
};

}  // namespace castor::detail
