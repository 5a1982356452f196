// SPDX-License-Identifier: Apache-2.0
#include "tools/limits/measure.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace castor::limits {

namespace {

/// Nanoseconds of one repetition in a batch of `contender.repetitions`.
double repetition_ns(const Contender& contender) {
  const double begin = now_ns();
  contender.run(contender.repetitions);
  return (now_ns() - begin) / static_cast<double>(contender.repetitions);
}

/// Sets the repetitions that make a batch of about `target_ns`.
void calibrate(Contender& contender, double target_ns) {
  contender.repetitions = 1;
  contender.run(1);  // cold caches, first use of pages
  double each = repetition_ns(contender);
  while (each * static_cast<double>(contender.repetitions) < target_ns / 4) {
    contender.repetitions *= 2;
    each = repetition_ns(contender);
  }
  contender.repetitions = static_cast<size_t>(std::max(target_ns / each, 1.0));
}

void measure_group(std::span<Contender> contenders, int rounds) {
  for (Contender& contender : contenders) {
    contender.minima.push_back(std::numeric_limits<double>::infinity());
  }
  for (int round = 0; round < rounds; ++round) {
    for (Contender& contender : contenders) {
      contender.minima.back() = std::min(contender.minima.back(), repetition_ns(contender));
    }
  }
}

/// How far the times of a group are above the best ones; 0 for none.
double noise_of(std::span<const Contender> contenders, std::span<const double> best, size_t group) {
  double sum = 0;
  for (size_t i = 0; i < contenders.size(); ++i) {
    sum += contenders[i].minima[group] / best[i] - 1;
  }
  return sum;
}

void keep_quietest_quarter(std::span<Contender> contenders) {
  std::vector<double> best;
  for (const Contender& contender : contenders) {
    best.push_back(*std::min_element(contender.minima.begin(), contender.minima.end()));
  }
  std::vector<std::pair<double, size_t>> groups;
  for (size_t group = 0; group < contenders.front().minima.size(); ++group) {
    groups.emplace_back(noise_of(contenders, best, group), group);
  }
  std::sort(groups.begin(), groups.end());
  groups.resize((groups.size() + 3) / 4);
  for (Contender& contender : contenders) {
    std::vector<double> kept;
    for (const auto& [noise, group] : groups) kept.push_back(contender.minima[group]);
    contender.minima = std::move(kept);
  }
}

}  // namespace

double now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::nano>(now).count();
}

void measure_in_turn(std::span<Contender> contenders, const Effort& effort) {
  for (Contender& contender : contenders) calibrate(contender, effort.batch_ns);
  const double end = now_ns() + effort.budget_ns;
  for (int group = 0; group < effort.min_groups || now_ns() < end; ++group) {
    measure_group(contenders, effort.rounds_a_group);
  }
  keep_quietest_quarter(contenders);
}

std::vector<double> sample_batches(Contender contender, const Effort& effort) {
  calibrate(contender, effort.batch_ns);
  const int min_batches = effort.min_groups * effort.rounds_a_group;
  const double end = now_ns() + effort.budget_ns;
  std::vector<double> times;
  for (int batch = 0; batch < min_batches || now_ns() < end; ++batch) {
    times.push_back(repetition_ns(contender));
  }
  return times;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double Contender::median_ns() const { return median_of(minima); }

double median_ratio(const Contender& numerator, const Contender& denominator) {
  return median_over_groups(numerator.minima.size(), [&](size_t group) {
    return numerator.minima[group] / denominator.minima[group];
  });
}

}  // namespace castor::limits
