// SPDX-License-Identifier: Apache-2.0
#include "bench/plain_contest.hpp"

namespace castor::bench {

PlainContest::PlainContest(PlainKernels& kernels, const Streams& streams,
                           const Footprint& footprint, const PlainTensors& tensors,
                           std::vector<Contender>& contenders)
    : first_(contenders.size()) {
  for (const auto& kernel :
       kernels.fastest(streams, {footprint.bytes, footprint.in_memory}, tensors)) {
    contenders.push_back(kernel->contender(tensors));
    entries_.push_back({kernel->variant().name(), kernel->fraction(tensors)});
  }
}

size_t PlainContest::fastest(std::span<const Contender> measured) const {
  size_t best = 0;
  const auto time = [&](size_t i) {
    return measured[first_ + i].median_ns() / entries_[i].fraction;
  };
  for (size_t i = 1; i < entries_.size(); ++i) {
    if (time(i) < time(best)) best = i;
  }
  return best;
}

double PlainContest::stream_fraction(std::span<const Contender> measured) const {
  const size_t best = fastest(measured);
  return median_ratio(measured[first_ + best], measured.front()) / entries_[best].fraction;
}

std::string PlainContest::fastest_name(std::span<const Contender> measured) const {
  return entries_[fastest(measured)].name;
}

}  // namespace castor::bench
