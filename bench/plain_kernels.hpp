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
/// then measured again beside each conversion. Not thread safe.
class PlainKernels {
 public:
  /// The two or three fastest, in descending order of speed. `workspace` gives memory to try
  /// them on; the destination is overwritten. Valid while this object lives.
  std::span<const std::unique_ptr<PlainKernel>> fastest(const TypePair& pair,
                                                        const Footprint& footprint,
                                                        const Workspace& workspace);

 private:
  using Kernels = std::vector<std::unique_ptr<PlainKernel>>;
  std::map<std::pair<Ratio, size_t>, Kernels> fastest_;
};

}  // namespace castor::bench
