// SPDX-License-Identifier: Apache-2.0
// The fastest plain kernels for each ratio of bytes and number of bytes.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tools/limits/plain_kernel.hpp"

namespace castor::limits {

/// How much plain kernels move.
struct MovedBytes {
  size_t bytes = 0;  ///< all tensors together
  bool in_memory =
      false;  ///< they exceed every cache, so that stores past the caches may be faster
};

/// Measures all variants once for each ratio and number of bytes and remembers the fastest, which
/// are then measured again beside each benchmark. Not thread safe.
class PlainKernels {
 public:
  /// The two or three fastest, in descending order of speed. The tensors give memory to try them
  /// on; the destination is overwritten. Valid while this object lives.
  std::span<const std::unique_ptr<PlainKernel>> fastest(const Streams& streams,
                                                        const MovedBytes& moved,
                                                        const PlainTensors& tensors);

 private:
  using Kernels = std::vector<std::unique_ptr<PlainKernel>>;
  std::map<std::pair<Streams, size_t>, Kernels> fastest_;
};

}  // namespace castor::limits
