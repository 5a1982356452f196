// SPDX-License-Identifier: Apache-2.0
// How fast this machine moves bytes and sums products, for comparing what castor takes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "ir/support/result.hpp"
#include "tools/limits/huge_buffer.hpp"
#include "tools/limits/plain_kernels.hpp"
#include "tools/limits/product_peak.hpp"

namespace castor::limits {

/// One thread's limits, each measured when it is first asked for. Not thread safe.
class MachineLimits {
 public:
  explicit MachineLimits(jit::Tier tier) : peak_(tier) {}

  /// Maximum number of products of 8-bit integers that are summed in a nanosecond.
  double products_per_ns();
  /// "vpdpbusd zmm": by what.
  std::string_view products_by() const { return peak_.name(); }

  /// Nanoseconds in which the fastest plain loop loads and stores these bytes, which it has
  /// moved before, so that they are in the cache that holds them. Nothing below 1 KiB, where a
  /// loop is too short to be one. Above 256 MiB it is in proportion. Fails (out_of_memory).
  Result<std::optional<double>> stream_ns(int64_t bytes_read, int64_t bytes_written);

 private:
  Result<double> measure_stream(size_t bytes_read, size_t bytes_written);

  ProductPeak peak_;
  std::optional<double> products_per_ns_;
  std::optional<HugeBuffer> memory_;
  std::map<std::pair<size_t, size_t>, double> streams_;  ///< nanoseconds, by bytes
};

}  // namespace castor::limits
