// SPDX-License-Identifier: Apache-2.0
// Which cells were hit, and how that reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/fuzz/cells.hpp"

namespace castor::fuzz {

/// One mark for each cell and tier, in memory that the caller gives (and may share with another
/// process): coverage_bytes of them, all 0 at first. Owns nothing.
class Coverage {
 public:
  Coverage(std::span<uint8_t> marks, const std::vector<jit::Tier>& tiers)
      : marks_(marks), tiers_(&tiers) {}
  static size_t bytes(const std::vector<jit::Tier>& tiers) { return cell_count() * tiers.size(); }

  void hit(const Cell& cell, size_t tier) { marks_[at(index_of(cell), tier)] = 1; }
  void hit(CellGroup group, size_t number, size_t tier) { hit(Cell{group, number}, tier); }
  void hit(CallCell call, size_t tier) { hit(CellGroup::calls, static_cast<size_t>(call), tier); }

  /// The first cell at or after `index` (round the table once) that a tier has yet to hit.
  std::optional<size_t> next_missing(size_t index) const;

  /// Cells of a group on the tiers that they concern.
  struct Count {
    size_t hit = 0;
    size_t cells = 0;
  };
  Count count(const GroupInfo& group) const;
  Count count() const;

  /// A line a group, "pairs x options: N of M cells", and under it at most `max_listed` of the
  /// cells not hit.
  std::string print(size_t max_listed = 10) const;

 private:
  size_t at(size_t index, size_t tier) const { return index * tiers_->size() + tier; }
  bool is_missing(size_t index, size_t tier) const {
    return marks_[at(index, tier)] == 0 && concerns(cell_at(index), (*tiers_)[tier]);
  }
  std::string list_missing(const GroupInfo& group, size_t max_listed) const;

  std::span<uint8_t> marks_;
  const std::vector<jit::Tier>* tiers_;
};

}  // namespace castor::fuzz
