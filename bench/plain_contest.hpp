// SPDX-License-Identifier: Apache-2.0
// Plain kernels measured beside a benchmark: stream_fraction.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/footprint.hpp"
#include "bench/limits.hpp"

namespace castor::bench {

/// The fastest plain kernels for some tensors among the contenders of one measurement.
class PlainContest {
 public:
  /// Adds the kernels to `contenders`, whose first one is what they are compared with. The
  /// tensors and the kernels outlive this object.
  PlainContest(PlainKernels& kernels, const Streams& streams, const Footprint& footprint,
               const PlainTensors& tensors, std::vector<Contender>& contenders);

  /// After the measurement: the fastest kernel's time, as if it had moved every byte, over that of
  /// the first contender; the median of one moment.
  double stream_fraction(std::span<const Contender> measured) const;
  /// "zmm x4", the fastest.
  std::string fastest_name(std::span<const Contender> measured) const;

 private:
  size_t fastest(std::span<const Contender> measured) const;

  struct Entry {
    std::string name;
    double fraction;  ///< fraction of all bytes that it moves
  };
  size_t first_;
  std::vector<Entry> entries_;
};

}  // namespace castor::bench
