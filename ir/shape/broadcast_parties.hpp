// SPDX-License-Identifier: Apache-2.0
// What all broadcast rules share: dimensions of types and of calls alike, and messages. Inside
// ir/shape only.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "ir/shape/broadcast.hpp"

namespace castor::broadcasting {

// ---- One dimension: of a type (Dim) or of a call (int64_t).

inline bool is_known(int64_t) { return true; }
inline bool is_known(const Dim& dim) { return dim.is_fixed(); }
inline bool is(int64_t extent, int64_t number) { return extent == number; }
inline bool is(const Dim& dim, int64_t number) { return dim.extent == number; }
inline std::string text_of(int64_t extent) { return std::to_string(extent); }
inline std::string text_of(const Dim& dim) {
  return dim.is_fixed() ? text_of(dim.extent) : "?" + dim.name;
}

inline int64_t unknown_of(int64_t extent) { return extent; }  // never asked for: extents are known
inline Dim unknown_of(const Dim&) { return Dim::any(); }

inline int rank_of(const Dims& extents) { return extents.rank(); }
inline int rank_of(const Shape& shape) { return static_cast<int>(shape.size()); }

/// What two dimensions that must be equal are: the one that is known, else the first; nothing when
/// they differ.
template <class Extent>
std::optional<Extent> equal(const Extent& a, const Extent& b) {
  if (is_known(a) && is_known(b) && !(a == b)) return std::nullopt;
  return is_known(b) ? b : a;
}

/// What two dimensions are of which one may be 1.
template <class Extent>
std::optional<Extent> equal_or_one(const Extent& a, const Extent& b) {
  if (is(a, 1)) return b;
  if (is(b, 1)) return a;
  const bool two_unknowns = !is_known(a) && !is_known(b) && !(a == b);
  return two_unknowns ? unknown_of(a) : equal(a, b);
}

// ---- Messages.

/// One of the two shapes of a message: "operand 0 [2, 3]", "the target [4]".
template <class Axes>
struct Party {
  std::string_view name;
  const Axes& shape;
};

template <class Axes>
inline std::string text_of(const Party<Axes>& party) {
  return fmt::format("{} {}", party.name, to_string(party.shape));
}

inline constexpr std::string_view operand_names[] = {"operand 0", "operand 1", "operand 2"};

inline Error mistake(OpKind op, const std::string& detail) {
  return {ErrorCode::invalid_function, fmt::format("{}: {}", name_of(op), detail)};
}

/// Both shapes, what is wrong with them, and the rule.
template <class Axes>
Error misfit(OpKind op, const Party<Axes>& a, const Party<Axes>& b, const std::string& found,
             std::string_view rule) {
  return mistake(op, fmt::format("{} against {}: {}; {}", text_of(a), text_of(b), found, rule));
}

template <class Extent>
std::string axis_misfit(int axis, const Extent& a, const Extent& b) {
  return fmt::format("axis {} of the result is {} against {}", axis, text_of(a), text_of(b));
}

}  // namespace castor::broadcasting
