// SPDX-License-Identifier: Apache-2.0
// The broadcast rules, on dimensions of types and on extents alike.
#include "ir/shape/broadcast.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/shape/broadcast_blocks.hpp"
#include "ir/shape/broadcast_parties.hpp"

namespace castor {

namespace {

using namespace broadcasting;

constexpr std::string_view numpy_rule =
    "broadcast = numpy needs right-aligned extents that are equal, or one of them 1";
constexpr std::string_view none_rule = "broadcast = none needs equal shapes";
constexpr std::string_view bidirectional_rule =
    "mode = bidirectional needs right-aligned extents that are equal, or one of them 1";
constexpr std::string_view one_directional_rule =
    "mode = numpy needs right-aligned extents of the data that are the target's or 1";
constexpr std::string_view explicit_rule =
    "mode = explicit needs extents of the data that are 1 or the target's at their axes";

// ---- The modes.

/// numpy and bidirectional.
template <class Axes>
Result<Axes> aligned_right(OpKind op, std::span<const Party<Axes>> parties, std::string_view rule) {
  using Extent = std::decay_t<decltype(parties[0].shape[0])>;
  int rank = 0;
  for (const Party<Axes>& party : parties) rank = std::max(rank, rank_of(party.shape));
  Axes result;
  for (int axis = 0; axis < rank; ++axis) {
    Extent merged = 1;
    const Party<Axes>* known_from = &parties[0];  // what fixed the extent
    for (const Party<Axes>& party : parties) {
      const int at = axis - (rank - rank_of(party.shape));
      if (at < 0) continue;
      const Extent& extent = party.shape[at];
      const std::optional<Extent> next = equal_or_one(merged, extent);
      if (!next) return misfit(op, *known_from, party, axis_misfit(axis, merged, extent), rule);
      if (is_known(extent) && !is(extent, 1)) known_from = &party;
      merged = *next;
    }
    result.push_back(merged);
  }
  return result;
}

/// What keeps two shapes from being equal, or nothing.
template <class Axes>
std::optional<Error> unequal(OpKind op, const Party<Axes>& a, const Party<Axes>& b) {
  if (rank_of(a.shape) != rank_of(b.shape)) {
    return misfit(op, a, b,
                  fmt::format("ranks are {} against {}", rank_of(a.shape), rank_of(b.shape)),
                  none_rule);
  }
  for (int axis = 0; axis < rank_of(a.shape); ++axis) {
    if (equal(a.shape[axis], b.shape[axis])) continue;
    return misfit(op, a, b, axis_misfit(axis, a.shape[axis], b.shape[axis]), none_rule);
  }
  return std::nullopt;
}

template <class Axes>
Result<Axes> equal_shapes(OpKind op, std::span<const Party<Axes>> parties) {
  Axes result = parties[0].shape;
  for (size_t i = 1; i < parties.size(); ++i) {
    for (const Party<Axes>& before : parties.first(i)) {
      if (const auto error = unequal(op, before, parties[i])) return *error;
    }
    for (int axis = 0; axis < rank_of(result); ++axis) {
      result[axis] = *equal(result[axis], parties[i].shape[axis]);
    }
  }
  return result;
}

/// A's axis that B's first axis is aligned with.
int64_t pdpd_start(int64_t axis, int rank_a, int rank_b) {
  return axis == -1 ? rank_a - rank_b : axis;
}

std::string pdpd_rule(std::string_view attribute, int64_t axis) {
  return fmt::format(
      "{} = pdpd, axis = {} needs rank(B) <= rank(A), -1 <= axis, axis + rank(B) <= rank(A) "
      "without trailing ones of B, and extents of B that are A's or 1",
      attribute, axis);
}

/// What is wrong with the ranks alone; empty if nothing.
std::string pdpd_ranks_misfit(int64_t axis, int rank_a, int rank_b) {
  if (rank_b > rank_a) return fmt::format("rank(A) is {}, rank(B) is {}", rank_a, rank_b);
  if (axis < -1) return fmt::format("axis is {}", axis);
  if (axis > rank_a) return fmt::format("axis is {}, rank(A) is {}", axis, rank_a);
  return {};
}

template <class Axes>
Result<Axes> onto_first(OpKind op, int64_t axis, const Party<Axes>& a, const Party<Axes>& b,
                        std::string_view attribute) {
  const int rank = rank_of(a.shape);
  const auto refused = [&](const std::string& found) {
    return misfit(op, a, b, found, pdpd_rule(attribute, axis));
  };
  const std::string ranks = pdpd_ranks_misfit(axis, rank, rank_of(b.shape));
  if (!ranks.empty()) return refused(ranks);
  const int64_t start = pdpd_start(axis, rank, rank_of(b.shape));
  Axes result = a.shape;
  for (int i = 0; i < rank_of(b.shape); ++i) {
    const auto& extent = b.shape[i];
    if (start + i >= rank) {
      if (is(extent, 1) || !is_known(extent)) continue;
      return refused(fmt::format("axis {} of B is {}, after A's last axis", i, text_of(extent)));
    }
    if (is(extent, 1)) continue;
    const int at = static_cast<int>(start) + i;
    // An unknown extent of B may be 1, so that it tells nothing of A's.
    const auto merged = is_known(extent) ? equal(result[at], extent) : std::optional(result[at]);
    if (!merged) return refused(axis_misfit(at, result[at], extent));
    result[at] = *merged;
  }
  return result;
}

template <class Axes>
Result<Axes> shapes(OpKind op, const BroadcastRule& rule, std::span<const Axes* const> operands) {
  std::vector<Party<Axes>> parties;
  for (size_t i = 0; i < operands.size(); ++i) parties.push_back({operand_names[i], *operands[i]});
  if (rule.mode == BroadcastMode::none) return equal_shapes<Axes>(op, parties);
  if (rule.mode == BroadcastMode::pdpd) {
    return onto_first(op, rule.axis, parties[0], parties[1], "broadcast");
  }
  if (rule.mode == BroadcastMode::blocked) {
    return onto_blocks(op, rule, parties[0], parties[1], "broadcast");
  }
  return aligned_right<Axes>(op, parties, numpy_rule);
}

// ---- The modes of `broadcast`.

/// Data against a target whose axis `axes(i)` the data's axis i is aligned with.
template <class Axes, class AxisOf>
Result<Axes> onto_target(const Party<Axes>& data, const Party<Axes>& target, const AxisOf& axis_of,
                         std::string_view rule) {
  for (int i = 0; i < rank_of(data.shape); ++i) {
    const int axis = axis_of(i);
    if (is(data.shape[i], 1) || equal(data.shape[i], target.shape[axis])) continue;
    return misfit(OpKind::broadcast, data, target,
                  axis_misfit(axis, data.shape[i], target.shape[axis]), rule);
  }
  return target.shape;
}

template <class Axes>
Result<Axes> onto_target_right(const Party<Axes>& data, const Party<Axes>& target) {
  const int shift = rank_of(target.shape) - rank_of(data.shape);
  if (shift < 0) {
    return misfit(
        OpKind::broadcast, data, target,
        fmt::format("ranks are {} against {}", rank_of(data.shape), rank_of(target.shape)),
        "mode = numpy needs a target of the data's rank or more");
  }
  return onto_target(
      data, target, [&](int i) { return i + shift; }, one_directional_rule);
}

/// What is wrong with the list of axes; empty if nothing.
std::string axes_misfit(const std::vector<int64_t>& axes, int data_rank, int target_rank) {
  if (axes.size() != static_cast<size_t>(data_rank)) {
    return fmt::format("axes has {} entries for data of rank {}", axes.size(), data_rank);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= target_rank) {
      return fmt::format("axes has {} for a target of rank {}", axes[i], target_rank);
    }
    if (i > 0 && axes[i] <= axes[i - 1]) {
      return fmt::format("axes has {} after {}", axes[i], axes[i - 1]);
    }
  }
  return {};
}

template <class Axes>
Result<Axes> onto_target_axes(const BroadcastRule& rule, const Party<Axes>& data,
                              const Party<Axes>& target) {
  const std::string found = axes_misfit(rule.axes, rank_of(data.shape), rank_of(target.shape));
  if (!found.empty()) {
    return misfit(OpKind::broadcast, data, target, found,
                  "mode = explicit needs one axis of the target for each axis of the data, "
                  "ascending, from 0 on and below the target's rank");
  }
  const auto axis_of = [&](int i) { return static_cast<int>(rule.axes[static_cast<size_t>(i)]); };
  return onto_target(data, target, axis_of, explicit_rule);
}

template <class Axes>
Result<Axes> to_target(const BroadcastRule& rule, const Axes& data_shape,
                       const Axes& target_shape) {
  const Party<Axes> data = {operand_names[0], data_shape};
  const Party<Axes> target = {"the target", target_shape};
  switch (rule.mode) {
    case BroadcastMode::pdpd: {
      const auto result = onto_first(OpKind::broadcast, rule.axis, target, data, "mode");
      if (!result) return result.error();
      return target_shape;
    }
    case BroadcastMode::bidirectional: {
      const Party<Axes> both[] = {data, target};
      return aligned_right<Axes>(OpKind::broadcast, both, bidirectional_rule);
    }
    case BroadcastMode::explicitly: return onto_target_axes(rule, data, target);
    case BroadcastMode::blocked: {
      const auto result = onto_blocks(OpKind::broadcast, rule, target, data, "mode");
      if (!result) return result.error();
      return target_shape;
    }
    case BroadcastMode::numpy:
    case BroadcastMode::none: break;
  }
  return onto_target_right(data, target);
}

}  // namespace

Result<Shape> broadcast_shapes(OpKind op, const BroadcastRule& rule,
                               std::span<const Shape* const> operands) {
  return shapes(op, rule, operands);
}
Result<Dims> broadcast_shapes(OpKind op, const BroadcastRule& rule,
                              std::span<const Dims* const> operands) {
  return shapes(op, rule, operands);
}

Result<Shape> broadcast_to_target(const BroadcastRule& rule, const Shape& data,
                                  const Shape& target) {
  return to_target(rule, data, target);
}
Result<Dims> broadcast_to_target(const BroadcastRule& rule, const Dims& data, const Dims& target) {
  return to_target(rule, data, target);
}

}  // namespace castor
