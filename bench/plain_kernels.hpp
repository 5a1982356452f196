// SPDX-License-Identifier: Apache-2.0
// The fastest plain kernels for each ratio of bytes and footprint.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "bench/footprint.hpp"
#include "bench/plain_kernel.hpp"

namespace castor::bench {

/// Measures all variants once for each ratio and footprint and remembers the fastest, which are
/// then measured again beside each benchmark. Not thread safe.
class PlainKernels {
 public:
  /// The two or three fastest, in descending order of speed. The tensors give memory to try them
  /// on; the destination is overwritten. Valid while this object lives.
  std::span<const std::unique_ptr<PlainKernel>> fastest(const Streams& streams,
                                                        const Footprint& footprint,
                                                        const PlainTensors& tensors);

 private:
  using Kernels = std::vector<std::unique_ptr<PlainKernel>>;
  std::map<std::pair<Streams, size_t>, Kernels> fastest_;
};

}  // namespace castor::bench
