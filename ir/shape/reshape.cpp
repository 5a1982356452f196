// SPDX-License-Identifier: Apache-2.0
#include "ir/shape/reshape.hpp"

#include <fmt/format.h>

namespace castor {

namespace {

constexpr int no_axis = -1;

Error misfit(const Shape& data, const Shape& target, const std::string& found,
             std::string_view rule) {
  return {ErrorCode::invalid_function,
          fmt::format("reshape: operand 0 {} against the target {}: {}; {}", to_string(data),
                      to_string(target), found, rule)};
}

bool is_open(const Dim& dim) { return dim == Dim::any(); }

/// The only axis that is open, or none.
int open_axis(const Shape& target) {
  const auto at = std::ranges::find_if(target, is_open);
  return at == target.end() ? no_axis : static_cast<int>(at - target.begin());
}

/// Extents of a shape without unknown ones; `open` stands as 1.
Dims extents_of(const Shape& shape, int open = no_axis) {
  Dims extents;
  for (const Dim& dim : shape) extents.push_back(extents.rank() == open ? 1 : dim.extent);
  return extents;
}

/// Counts are known: the open extent follows, or the counts are compared.
Result<Shape> fitted(const Shape& data, const Shape& target, int open) {
  const std::optional<int64_t> count = element_count(extents_of(data));
  const std::optional<int64_t> known = element_count(extents_of(target, open));
  if (!count || !known) {
    return misfit(data, target, "one has more than 2^63 - 1 elements",
                  "reshape needs equal counts");
  }
  if (open == no_axis) {
    if (*count == *known) return target;
    return misfit(data, target, fmt::format("{} elements against {}", *count, *known),
                  "reshape needs equal counts");
  }
  if (*known == 0 || *count % *known != 0) {
    return misfit(data, target, fmt::format("axis {} is to make {} of {}", open, *count, *known),
                  "the extent for ? is the count divided by the other extents, without remainder");
  }
  Shape result = target;
  result[static_cast<size_t>(open)] = *count / *known;
  return result;
}

}  // namespace

Result<Shape> reshaped(const Shape& data, const Shape& target) {
  if (std::ranges::count_if(target, is_open) > 1) {
    return misfit(data, target, "more than one extent is ?", "one alone can follow from the count");
  }
  const int open = open_axis(target);
  Shape others = target;
  if (open != no_axis) others[static_cast<size_t>(open)] = 1;
  if (is_fixed(data) && is_fixed(others)) return fitted(data, target, open);
  return target;
}

Result<Dims> reshaped(const Dims& data, const Dims& target) {
  const Result<Shape> shape = reshaped(to_shape(data), to_shape(target));
  if (!shape) return shape.error();
  return extents_of(*shape);
}

}  // namespace castor
