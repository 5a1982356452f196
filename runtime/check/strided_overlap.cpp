// SPDX-License-Identifier: Apache-2.0
#include "runtime/check/strided_overlap.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <span>

#include "ir/support/integer_math.hpp"
#include "runtime/check/bounded_sum.hpp"

namespace castor {

namespace {

/// Sums of four of these stay within 64 bits.
constexpr int64_t max_reach_bytes = int64_t{1} << 59;

bool is_empty(const ElementOffsets& places) {
  return std::ranges::any_of(places.extents, [](int64_t extent) { return extent == 0; });
}

/// Whether all distances within the tensor are below max_reach_bytes.
bool is_within_reach(const ElementOffsets& places) {
  const int64_t max_parts = max_reach_bytes / std::max(places.unit_bytes, places.unit_parts);
  int64_t parts = places.element_parts;
  for (int axis = 0; axis < places.extents.rank(); ++axis) {
    if (places.extents[axis] <= 1) continue;
    int64_t reach = 0;
    if (__builtin_mul_overflow(places.strides[axis], places.extents[axis] - 1, &reach))
      return false;
    if (reach <= -max_parts || reach >= max_parts) return false;
    parts += std::abs(reach);
    if (parts >= max_parts) return false;
  }
  return true;
}

/// Moves the first element by a number of parts, which may be negative.
void move_first(ElementOffsets& places, int64_t parts) {
  const int64_t from_unit = places.first_part + parts;
  const int64_t units =
      from_unit >= 0 ? from_unit / places.unit_parts : -ceil_div(-from_unit, places.unit_parts);
  places.begin += static_cast<uintptr_t>(units * places.unit_bytes);
  places.first_part = from_unit - units * places.unit_parts;
}

struct Axis {
  int64_t extent;
  int64_t stride;
};

/// The same elements with positive strides, the smallest first, and with contiguous axes taken into
/// the element: along those, no whole unit between two elements stays untouched.
ElementOffsets normalised(const ElementOffsets& given) {
  ElementOffsets places = given;
  std::array<Axis, max_rank + 1> axes;
  size_t count = 0;
  for (int axis = 0; axis < given.extents.rank(); ++axis) {
    if (given.extents[axis] == 1 || given.strides[axis] == 0) continue;
    const Axis walked = {given.extents[axis], std::abs(given.strides[axis])};
    if (given.strides[axis] < 0) move_first(places, -walked.stride * (walked.extent - 1));
    axes[count++] = walked;
  }
  std::sort(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(count),
            [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  places.extents = places.strides = Dims();
  for (const Axis& axis : std::span(axes).first(count)) {
    if (axis.stride < places.element_parts + places.unit_parts) {
      places.element_parts += (axis.extent - 1) * axis.stride;
    } else {
      places.extents.push_back(axis.extent);
      places.strides.push_back(axis.stride);
    }
  }
  return places;
}

/// Calls `visit` with tensors that have all elements between them and whose strides are whole
/// units, until one is not apart.
template <class Visit>
Overlap for_each_phase(const ElementOffsets& places, const Visit& visit) {
  const auto odd = std::ranges::find_if(
      places.strides, [&](int64_t stride) { return stride % places.unit_parts != 0; });
  if (odd == places.strides.end()) return visit(places);
  const auto axis = static_cast<int>(odd - places.strides.begin());
  const int64_t extent = places.extents[axis];
  const int64_t phases = places.unit_parts / std::gcd(*odd, places.unit_parts);
  for (int64_t phase = 0; phase < std::min(phases, extent); ++phase) {
    ElementOffsets part = places;
    move_first(part, phase * *odd);
    part.extents[axis] = ceil_div(extent - phase, phases);
    part.strides[axis] = phases * *odd;
    const Overlap found = for_each_phase(part, visit);
    if (found != Overlap::apart) return found;
  }
  return Overlap::apart;
}

/// A tensor whose elements are `span` bytes each, at distances of whole bytes.
struct Spans {
  uintptr_t begin;
  int64_t span;
  int64_t reach = 0;  ///< from the first element to the last
};

/// Adds a term for each axis.
Spans spans_of(const ElementOffsets& places, std::array<BoundedTerm, max_terms>& terms,
               size_t& count) {
  const int64_t units = (places.first_part + places.element_parts - 1) / places.unit_parts + 1;
  Spans spans = {places.begin, units * places.unit_bytes};
  for (int axis = 0; axis < places.extents.rank(); ++axis) {
    const int64_t max = places.extents[axis] - 1;
    if (max == 0) continue;
    const int64_t stride = places.strides[axis] / places.unit_parts * places.unit_bytes;
    terms[count++] = {stride, max};
    spans.reach += stride * max;
  }
  return spans;
}

/// The terms for tensors whose strides are whole units. Elements meet where a's is less than its
/// span before b's, or b's less than its own before a's. With the indices of b counted from its
/// last element, a's distance from its first and b's from its last add up to the sum that is looked
/// for.
Overlap find_meeting(const ElementOffsets& a, const ElementOffsets& b, int64_t& steps) {
  std::array<BoundedTerm, max_terms> terms;
  size_t count = 0;
  const Spans first = spans_of(a, terms, count);
  const Spans second = spans_of(b, terms, count);
  const int64_t to_last = static_cast<int64_t>(second.begin - first.begin) + second.reach;
  switch (sum_reaches(std::span(terms).first(count),
                      {to_last - first.span + 1, to_last + second.span - 1}, steps)) {
    case Reachable::no: return Overlap::apart;
    case Reachable::yes: return Overlap::shared;
    case Reachable::undecided: break;
  }
  return Overlap::undecided;
}

/// Whether the first elements are close enough for distances to be counted.
bool are_near(const ElementOffsets& a, const ElementOffsets& b) {
  const uintptr_t distance = a.begin < b.begin ? b.begin - a.begin : a.begin - b.begin;
  return distance < 2 * static_cast<uintptr_t>(max_reach_bytes);
}

}  // namespace

Overlap find_overlap(const ElementOffsets& a, const ElementOffsets& b, int64_t& steps) {
  if (is_empty(a) || is_empty(b)) return Overlap::apart;
  if (!is_within_reach(a) || !is_within_reach(b)) return Overlap::undecided;
  if (!are_near(a, b)) return Overlap::apart;
  const ElementOffsets other = normalised(b);
  return for_each_phase(normalised(a), [&](const ElementOffsets& part) {
    return for_each_phase(other, [&](const ElementOffsets& other_part) {
      return find_meeting(part, other_part, steps);
    });
  });
}

}  // namespace castor
