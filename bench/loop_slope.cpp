// SPDX-License-Identifier: Apache-2.0
#include "bench/loop_slope.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "bench/core_clock.hpp"

namespace castor::bench {

namespace {

constexpr size_t rounds_a_repetition = 48;  // calls of each size

/// Indices 0 to count - 1, each equally often, shuffled.
std::vector<uint8_t> shuffled_order(size_t count) {
  std::vector<uint8_t> order(count * rounds_a_repetition);
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint8_t>(i % count);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  return order;
}

}  // namespace

Result<LoopSlope::Mix> LoopSlope::mix(int64_t max_iterations, int64_t iteration_elements,
                                      const Bind& bind) {
  Mix mix;
  for (int i = 0; i < sizes; ++i) {
    const int64_t elements = (max_iterations - i) * iteration_elements;
    const auto call = bind(elements);
    if (!call) return call.error();
    if (Status status = call->run(); !status) return status.error();
    mix.calls.push_back(*call);
    mix.elements += elements;
  }
  return mix;
}

Result<LoopSlope> LoopSlope::prepare(int64_t max_iterations, int64_t iteration_elements,
                                     const Bind& bind) {
  if (max_iterations < min_iterations) {
    return Error{ErrorCode::internal, fmt::format("{} iterations fit, expected at least {}",
                                                  max_iterations, min_iterations)};
  }
  const auto many = mix(max_iterations, iteration_elements, bind);
  if (!many) return many.error();
  const auto few = mix(std::max<int64_t>(max_iterations / 4, sizes), iteration_elements, bind);
  if (!few) return few.error();
  LoopSlope slope;
  slope.many_ = *many;
  slope.few_ = *few;
  return slope;
}

Contender LoopSlope::contender(const Mix& mix) {
  return {.run = [calls = mix.calls, order = shuffled_order(sizes)](size_t repetitions) {
    for (size_t i = 0; i < repetitions; ++i) {
      for (const uint8_t index : order) static_cast<void>(calls[index].run());
    }
  }};
}

std::array<Contender, 2> LoopSlope::contenders() const {
  return {contender(many_), contender(few_)};
}

double LoopSlope::element_ns(const Contender& many, const Contender& few, size_t group) const {
  const auto calls_of_each = static_cast<double>(rounds_a_repetition);
  return (many.minima[group] - few.minima[group]) /
         (calls_of_each * static_cast<double>(many_.elements - few_.elements));
}

double LoopSlope::cycles_per_element(const Contender& clock, const Contender& many,
                                     const Contender& few) const {
  return median_over_groups(clock.minima.size(), [&](size_t group) {
    return element_ns(many, few, group) * CoreClock::gigahertz(clock, group);
  });
}

}  // namespace castor::bench
