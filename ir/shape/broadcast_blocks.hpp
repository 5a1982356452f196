// SPDX-License-Identifier: Apache-2.0
// Blocked broadcasting: along some axes of A, one element of B serves a block. Inside ir/shape
// only.
#pragma once

#include "ir/shape/broadcast_parties.hpp"
#include "ir/support/integer_math.hpp"

namespace castor::broadcasting {

inline std::string blocked_rule(std::string_view attribute) {
  return fmt::format(
      "{} = blocked needs rank(B) <= rank(A) < {}, axes of A that B has, ascending, one block of "
      "at "
      "least 1 for each, and extents of B that are ceil(A / block) there, elsewhere A's or 1",
      attribute, max_rank);
}

/// What is wrong with the lists alone; empty if nothing. `shift` axes of A are before B's first.
inline std::string block_lists_misfit(const BroadcastRule& rule, int rank_a, int shift) {
  if (rule.block.size() != rule.axes.size()) {
    return fmt::format("axes has {} entries, block has {}", rule.axes.size(), rule.block.size());
  }
  for (size_t i = 0; i < rule.axes.size(); ++i) {
    if (rule.axes[i] < shift || rule.axes[i] >= rank_a) {
      return fmt::format("axes has {}, rank(A) is {}, rank(B) is {}", rule.axes[i], rank_a,
                         rank_a - shift);
    }
    if (i > 0 && rule.axes[i] <= rule.axes[i - 1]) {
      return fmt::format("axes has {} after {}", rule.axes[i], rule.axes[i - 1]);
    }
    if (rule.block[i] < 1) return fmt::format("block has {}", rule.block[i]);
  }
  return {};
}

/// The extent along A's axis that blocks have; 0 where they have none of it.
inline int64_t block_along(const BroadcastRule& rule, int axis) {
  for (size_t i = 0; i < rule.axes.size(); ++i) {
    if (rule.axes[i] == axis) return rule.block[i];
  }
  return 0;
}

inline int64_t blocks_of(int64_t extent, int64_t block) { return ceil_div(extent, block); }
inline Dim blocks_of(const Dim& dim, int64_t block) {
  return dim.is_fixed() ? Dim(blocks_of(dim.extent, block)) : Dim::any();
}

/// A's shape, with what B says of its unknown extents.
template <class Axes>
Result<Axes> onto_blocks(OpKind op, const BroadcastRule& rule, const Party<Axes>& a,
                         const Party<Axes>& b, std::string_view attribute) {
  const int rank = rank_of(a.shape);
  const int shift = rank - rank_of(b.shape);
  const auto refused = [&](const std::string& found) {
    return misfit(op, a, b, found, blocked_rule(attribute));
  };
  if (shift < 0 || rank >= max_rank) {  // an axis more is needed to take blocks apart
    return refused(fmt::format("rank(A) is {}, rank(B) is {}", rank, rank - shift));
  }
  const std::string lists = block_lists_misfit(rule, rank, shift);
  if (!lists.empty()) return refused(lists);
  Axes result = a.shape;
  for (int axis = shift; axis < rank; ++axis) {
    const auto& extent = b.shape[axis - shift];
    const int64_t block = block_along(rule, axis);
    if (block > 0) {
      if (equal(blocks_of(result[axis], block), extent)) continue;
      return refused(fmt::format("axis {} of the result is {} in blocks of {} against {}", axis,
                                 text_of(result[axis]), block, text_of(extent)));
    }
    if (is(extent, 1)) continue;
    // An unknown extent of B may be 1, so that it tells nothing of A's.
    const auto merged =
        is_known(extent) ? equal(result[axis], extent) : std::optional(result[axis]);
    if (!merged) return refused(axis_misfit(axis, result[axis], extent));
    result[axis] = *merged;
  }
  return result;
}

}  // namespace castor::broadcasting
