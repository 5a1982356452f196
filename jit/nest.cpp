// SPDX-License-Identifier: Apache-2.0
#include "jit/nest.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace castor::jit {

namespace {

struct Axis {
  int64_t extent;
  std::vector<int64_t> strides;  // by operand
};

/// Axes of more than one element, ordered from the closest walk to the farthest: by the stride of
/// the last operand (an output), then of the others.
std::vector<Axis> ordered_axes(const Dims& extents, std::span<const Dims> strides) {
  std::vector<Axis> axes;
  for (int i = extents.rank() - 1; i >= 0; --i) {
    if (extents[i] == 1) continue;
    Axis axis{extents[i], {}};
    for (const Dims& operand : strides) axis.strides.push_back(operand[i]);
    axes.push_back(std::move(axis));
  }
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
    return std::lexicographical_compare(a.strides.rbegin(), a.strides.rend(), b.strides.rbegin(),
                                        b.strides.rend());
  });
  return axes;
}

/// Whether every operand walks `outer` as the continuation of `inner`.
bool continues(const Axis& inner, const Axis& outer) {
  for (size_t k = 0; k < inner.strides.size(); ++k) {
    int64_t behind = 0;
    if (__builtin_mul_overflow(inner.strides[k], inner.extent, &behind)) return false;
    if (outer.strides[k] != behind) return false;
  }
  return true;
}

}  // namespace

std::string_view name_of(Access access) {
  return access == Access::contiguous ? "contiguous" : "strided";
}

ElementType Nest::element(size_t operand) const {
  return operand < inputs.size() ? program.sources[operand].element
                                 : program.sinks[operand - inputs.size()].element;
}

IterationSpace iteration_space(const Dims& extents, std::span<const Dims> strides) {
  std::vector<Axis> merged;
  for (Axis& axis : ordered_axes(extents, strides)) {
    if (!merged.empty() && continues(merged.back(), axis)) {
      merged.back().extent *= axis.extent;
    } else {
      merged.push_back(std::move(axis));
    }
  }
  if (merged.empty()) merged.push_back({1, std::vector<int64_t>(strides.size(), 1)});

  IterationSpace space;
  space.form.rank = static_cast<int>(merged.size());
  space.strides.resize(strides.size());
  for (size_t a = 0; a < merged.size(); ++a) {
    space.extents.push_back(merged[a].extent);
    for (size_t k = 0; k < strides.size(); ++k) space.strides[k][a] = merged[a].strides[k];
  }
  for (size_t k = 0; k < strides.size(); ++k) {
    space.form.access.push_back(space.strides[k][0] == 1 ? Access::contiguous : Access::strided);
  }
  return space;
}

std::vector<int64_t> pack_arguments(const Nest& nest, const IterationSpace& space) {
  const ArgumentLayout layout(nest.operands(), space.form.rank);
  std::vector<int64_t> words(layout.words(), 0);
  for (int axis = 0; axis < space.form.rank; ++axis) {
    words[layout.extent(axis)] = space.extents[axis];
    for (size_t k = 0; k < nest.operands(); ++k) {
      const auto& strides = space.strides[k];
      const auto at = static_cast<size_t>(axis);
      // The innermost loop counts elements and leaves pointers where they are.
      const auto behind = axis >= 2 ? static_cast<uint64_t>(space.extents[axis - 1]) *
                                          static_cast<uint64_t>(strides[at - 1])
                                    : 0;
      // Steps may be negative: addresses are added modulo 2^64.
      const auto bytes = static_cast<uint64_t>(bits_of(nest.element(k)) / 8);
      words[layout.step(k, axis)] =
          static_cast<int64_t>((static_cast<uint64_t>(strides[at]) - behind) * bytes);
    }
  }
  return words;
}

}  // namespace castor::jit
