// SPDX-License-Identifier: Apache-2.0
// Where tensors and copies lie in a call's scratch.
#pragma once

#include <cstddef>
#include <map>

namespace castor::detail {

/// Gives out places in the order in which nests run; a place that is given back is used again.
class ScratchPlan {
 public:
  /// The offset of a place of that many bytes, and of `padding` more that may be read behind.
  /// Throws std::bad_alloc where sizes overflow.
  size_t take(size_t bytes);
  /// The place at that offset is free for whatever runs later.
  void give_back(size_t offset);
  /// Bytes of all places.
  size_t bytes() const { return end_; }

 private:
  static constexpr size_t padding = 64;

  std::map<size_t, size_t> taken_;      // sizes by offset
  std::multimap<size_t, size_t> free_;  // offsets by size
  size_t end_ = 0;
};

}  // namespace castor::detail
