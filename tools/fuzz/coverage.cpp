// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/coverage.hpp"

#include <fmt/format.h>

namespace castor::fuzz {

std::optional<size_t> Coverage::next_missing(size_t index) const {
  const size_t cells = cell_count();
  for (size_t step = 0; step < cells; ++step) {
    const size_t candidate = (index + step) % cells;
    for (size_t tier = 0; tier < tiers_->size(); ++tier) {
      if (is_missing(candidate, tier)) return candidate;
    }
  }
  return {};
}

Coverage::Count Coverage::count(const GroupInfo& group) const {
  Count count;
  for (size_t index = group.first; index < group.first + group.size; ++index) {
    for (size_t tier = 0; tier < tiers_->size(); ++tier) {
      if (!concerns(cell_at(index), (*tiers_)[tier])) continue;
      ++count.cells;
      count.hit += marks_[at(index, tier)];
    }
  }
  return count;
}

Coverage::Count Coverage::count() const {
  Count all;
  for (const GroupInfo& group : group_table()) {
    const Count count_of_group = count(group);
    all.hit += count_of_group.hit;
    all.cells += count_of_group.cells;
  }
  return all;
}

std::string Coverage::list_missing(const GroupInfo& group, size_t max_listed) const {
  std::string text;
  size_t missing = 0;
  for (size_t index = group.first; index < group.first + group.size; ++index) {
    for (size_t tier = 0; tier < tiers_->size(); ++tier) {
      if (!is_missing(index, tier) || ++missing > max_listed) continue;
      text += fmt::format("    not hit: {} on {}\n", describe(cell_at(index)),
                          jit::name_of((*tiers_)[tier]));
    }
  }
  if (missing > max_listed) text += fmt::format("    and {} more\n", missing - max_listed);
  return text;
}

std::string Coverage::print(size_t max_listed) const {
  std::string text;
  for (const GroupInfo& group : group_table()) {
    const Count hits = count(group);
    text += fmt::format("  {} x tiers: {} of {} cells\n", group.name, hits.hit, hits.cells);
    text += list_missing(group, max_listed);
  }
  return text;
}

}  // namespace castor::fuzz
