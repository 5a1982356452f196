// SPDX-License-Identifier: Apache-2.0
#include "tools/limits/machine_limits.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "jit/memory/system_memory.hpp"

namespace castor::limits {

namespace {

constexpr int64_t min_bytes = int64_t{1} << 10;
constexpr int64_t max_bytes = int64_t{256} << 20;
/// Loads and stores that have the same low 12 bits of their address wait for each other.
constexpr size_t apart = jit::page_bytes - 512;
constexpr Effort effort = {
    .batch_ns = 20e3, .budget_ns = 20e6, .rounds_a_group = 4, .min_groups = 2};

/// Kernels that move less than that part of the bytes in whole iterations are no measure.
constexpr double min_fraction = 0.5;

}  // namespace

double MachineLimits::products_per_ns() {
  if (!products_per_ns_) {
    Contender loop = peak_.contender();
    measure_in_turn({&loop, 1}, effort);
    products_per_ns_ = peak_.products() / loop.median_ns();
  }
  return *products_per_ns_;
}

Result<std::optional<double>> MachineLimits::stream_ns(int64_t bytes_read, int64_t bytes_written) {
  const int64_t all = bytes_read + bytes_written;
  if (all < min_bytes) return std::optional<double>();
  const double scale =
      all > max_bytes ? static_cast<double>(max_bytes) / static_cast<double>(all) : 1;
  const auto scaled = [scale](int64_t bytes) {
    return static_cast<size_t>(static_cast<double>(bytes) * scale);
  };
  const std::pair key = {scaled(bytes_read), scaled(bytes_written)};
  const auto known = streams_.find(key);
  if (known != streams_.end()) return std::optional(known->second / scale);
  const Result<double> time = measure_stream(key.first, key.second);
  if (!time) return time.error();
  if (*time == std::numeric_limits<double>::infinity()) return std::optional<double>();
  streams_.emplace(key, *time);
  return std::optional(*time / scale);
}

/// Infinite where no kernel moves enough of the bytes.
Result<double> MachineLimits::measure_stream(size_t bytes_read, size_t bytes_written) {
  const size_t begin = jit::round_up(bytes_read, jit::page_bytes) + apart;
  if (!memory_ || memory_->bytes().size() < begin + bytes_written) {
    memory_.reset();
    Result<HugeBuffer> memory = HugeBuffer::allocate(begin + bytes_written);
    if (!memory) return memory.error();
    memory_ = std::move(memory).value();
  }
  const PlainTensors tensors = {{memory_->bytes().first(bytes_read)},
                                memory_->bytes().subspan(begin, bytes_written)};
  const Streams streams = streams_of(tensors);
  const bool in_memory = bytes_read + bytes_written > jit::host().llc_bytes;
  std::vector<std::unique_ptr<PlainKernel>> kernels;
  std::vector<Contender> contenders;
  for (const PlainVariant& variant : plain_variants(streams, jit::host(), in_memory)) {
    auto kernel = std::make_unique<PlainKernel>(streams, variant);
    if (kernel->fraction(tensors) < min_fraction) continue;
    contenders.push_back(kernel->contender(tensors));
    kernels.push_back(std::move(kernel));
  }
  double best = std::numeric_limits<double>::infinity();
  if (contenders.empty()) return best;
  measure_in_turn(contenders, effort);
  for (size_t i = 0; i < kernels.size(); ++i) {
    best = std::min(best, contenders[i].median_ns() / kernels[i]->fraction(tensors));
  }
  return best;
}

}  // namespace castor::limits
