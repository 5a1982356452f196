// SPDX-License-Identifier: Apache-2.0
// Order statistics of measured times.
#pragma once

#include <algorithm>
#include <vector>

#include "bench/limits.hpp"

namespace castor::bench {

/// How long to sample a time that is reported as a distribution: some ten thousand batches of it.
inline constexpr Effort distribution_effort = {
    .batch_ns = 10e3, .budget_ns = 200e6, .min_groups = 25};

struct Distribution {
  double min = 0;
  double median = 0;
  double p90 = 0;  ///< nine in ten are not above it
};

/// The distribution of at least one value.
inline Distribution distribution_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values[values.size() * 9 / 10]};
}

}  // namespace castor::bench
