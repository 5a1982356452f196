// SPDX-License-Identifier: Apache-2.0
#include "tools/limits/plain_kernels.hpp"

#include <algorithm>

namespace castor::limits {

namespace {

using Kernels = std::vector<std::unique_ptr<PlainKernel>>;

/// Iterations that leave more than this fraction of the bytes out do not count as a way to move
/// them.
constexpr double min_fraction = 0.9;

/// Measures the kernels beside each other and keeps the `count` fastest, in order.
Kernels keep_fastest(Kernels kernels, const PlainTensors& tensors, const Effort& effort,
                     size_t count) {
  std::vector<Contender> contenders;
  for (const auto& kernel : kernels) contenders.push_back(kernel->contender(tensors));
  measure_in_turn(contenders, effort);
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < kernels.size(); ++i) {
    order.emplace_back(contenders[i].median_ns() / kernels[i]->fraction(tensors), i);
  }
  std::sort(order.begin(), order.end());
  Kernels kept;
  for (size_t i = 0; i < std::min(count, order.size()); ++i) {
    kept.push_back(std::move(kernels[order[i].second]));
  }
  return kept;
}

}  // namespace

std::span<const std::unique_ptr<PlainKernel>> PlainKernels::fastest(const Streams& streams,
                                                                    const MovedBytes& moved,
                                                                    const PlainTensors& tensors) {
  const auto [at, is_new] = fastest_.try_emplace({streams, moved.bytes});
  if (is_new) {
    Kernels all;
    for (const PlainVariant& variant : plain_variants(streams, jit::host(), moved.in_memory)) {
      auto kernel = std::make_unique<PlainKernel>(streams, variant);
      if (kernel->fraction(tensors) >= min_fraction) all.push_back(std::move(kernel));
    }
    const Effort effort = {
        .batch_ns = 20e3, .budget_ns = 30e6, .rounds_a_group = 4, .min_groups = 1};
    at->second = keep_fastest(std::move(all), tensors, effort, moved.in_memory ? 2 : 3);
  }
  return at->second;
}

}  // namespace castor::limits
