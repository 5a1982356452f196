// SPDX-License-Identifier: Apache-2.0
#include "bench/plain_kernels.hpp"

#include <algorithm>

namespace castor::bench {

namespace {

using Kernels = std::vector<std::unique_ptr<PlainKernel>>;

/// Measures the kernels beside each other and keeps the `count` fastest, in order.
Kernels keep_fastest(Kernels kernels, const Workspace& workspace, const Effort& effort,
                     size_t count) {
  std::vector<Contender> contenders;
  for (const auto& kernel : kernels) {
    contenders.push_back(kernel->contender(workspace.source.data(), workspace.destination.data(),
                                           workspace.source.size()));
  }
  measure_in_turn(contenders, effort);
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < kernels.size(); ++i) order.emplace_back(contenders[i].median_ns(), i);
  std::sort(order.begin(), order.end());
  Kernels kept;
  for (size_t i = 0; i < std::min(count, order.size()); ++i) {
    kept.push_back(std::move(kernels[order[i].second]));
  }
  return kept;
}

}  // namespace

std::span<const std::unique_ptr<PlainKernel>> PlainKernels::fastest(const TypePair& pair,
                                                                    const Footprint& footprint,
                                                                    const Workspace& workspace) {
  const Ratio ratio = {bits_of(pair.from), bits_of(pair.to)};
  const auto [at, is_new] = fastest_.try_emplace({ratio, footprint.bytes});
  if (is_new) {
    Kernels all;
    for (const PlainVariant& variant : plain_variants(ratio, jit::host(), footprint.in_memory)) {
      auto kernel = std::make_unique<PlainKernel>(ratio, variant);
      const size_t bytes = workspace.source.size();
      if (bytes < kernel->iteration_bytes() || bytes % kernel->iteration_bytes() != 0) continue;
      all.push_back(std::move(kernel));
    }
    const Effort effort = {
        .batch_ns = 20e3, .budget_ns = 30e6, .rounds_a_group = 4, .least_groups = 1};
    at->second = keep_fastest(std::move(all), workspace, effort, footprint.in_memory ? 2 : 3);
  }
  return at->second;
}

}  // namespace castor::bench
