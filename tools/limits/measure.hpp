// SPDX-License-Identifier: Apache-2.0
// Timing of several contenders in short alternating batches.
//
// A group of rounds gives one minimum for each contender, all of the same moment. What is reported
// is the median, over the quietest quarter of the groups, of times or of figures computed from the
// minima of one group. A minimum over everything would not do for ratios: on a machine that others
// use too, some contender may meet a quiet moment that the others miss.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace castor::limits {

/// One of the things that are measured against each other.
struct Contender {
  /// Does the work that many times; the loop is inside, so that a repetition pays for no call
  /// through std::function.
  std::function<void(size_t repetitions)> run;
  size_t repetitions = 1;           ///< in one batch; set by measure_in_turn
  std::vector<double> minima = {};  ///< ns per repetition, by quiet group; set by measure_in_turn

  double median_ns() const;
};

/// How long to measure.
struct Effort {
  double batch_ns = 30e3;    ///< length of one batch, at least one repetition
  double budget_ns = 100e6;  ///< for all groups together
  int rounds_a_group = 4;    ///< a round is one batch of every contender
  int min_groups = 4;        ///< even when the budget is spent
};

/// Time since an arbitrary moment, in nanoseconds, monotonic.
double now_ns();

/// Calibrates each contender (which also warms caches and code), then runs their batches in turn,
/// so that none meets a faster machine than the others, and keeps the quietest groups: those with
/// the smallest sum of times, each in proportion to the contender's best.
void measure_in_turn(std::span<Contender> contenders, const Effort& effort);

/// Calibrates a contender, then runs batches alone until the budget is spent: nanoseconds of one
/// repetition in each of them.
std::vector<double> sample_batches(Contender contender, const Effort& effort);

/// The median of at least one value.
double median_of(std::vector<double> values);

/// The median over the groups that were kept of `figure(group)`.
template <class Figure>
double median_over_groups(size_t groups, const Figure& figure) {
  std::vector<double> figures(groups);
  for (size_t i = 0; i < groups; ++i) figures[i] = figure(i);
  return median_of(std::move(figures));
}

/// The median of the ratio of two contenders' times; both were measured in turn.
double median_ratio(const Contender& numerator, const Contender& denominator);

}  // namespace castor::limits
