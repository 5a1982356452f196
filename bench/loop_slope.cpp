// SPDX-License-Identifier: Apache-2.0
#include "bench/loop_slope.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

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

Result<LoopSlope::Mix> LoopSlope::mix(const Runtime& runtime, const TypePair& pair,
                                      const Workspace& workspace, int64_t most_iterations,
                                      int64_t iteration_elements) {
  Mix mix;
  for (int i = 0; i < sizes; ++i) {
    const int64_t elements = (most_iterations - i) * iteration_elements;
    const auto call = bind_conversion(runtime, pair, first_elements(pair, workspace, elements));
    if (!call) return call.error();
    mix.calls.push_back(*call);
    mix.elements += elements;
  }
  return mix;
}

Result<LoopSlope> LoopSlope::prepare(const Runtime& runtime, const TypePair& pair,
                                     const Workspace& workspace, int64_t iteration_elements) {
  const int64_t iterations = workspace.elements / iteration_elements;
  if (iterations < 2 * sizes) {
    return Error{ErrorCode::internal,
                 fmt::format("{} iterations fit, expected at least {}", iterations, 2 * sizes)};
  }
  const auto many = mix(runtime, pair, workspace, iterations, iteration_elements);
  if (!many) return many.error();
  const auto few =
      mix(runtime, pair, workspace, std::max<int64_t>(iterations / 4, sizes), iteration_elements);
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

}  // namespace castor::bench
