// SPDX-License-Identifier: Apache-2.0
#include "jit/plan/nest_form.hpp"

#include <algorithm>

#include "ir/types/storage.hpp"

namespace castor::jit {

namespace {

struct Axis {
  int64_t extent;
  std::vector<int64_t> strides;  // by operand
};

/// Axes of more than one element, ordered from the smallest strides to the largest: by the stride
/// of the last operand (an output), then by those of the others.
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

/// Whether rows of sub-byte elements begin at bytes, and, where they are written, end at bytes.
bool rows_are_whole_bytes(const IterationSpace& space, size_t k, const OperandStorage& storage) {
  const int64_t aligned = aligned_elements(storage.element);
  for (int axis = 1; axis < space.form.rank; ++axis) {
    if (space.strides[k][static_cast<size_t>(axis)] % aligned != 0) return false;
  }
  return space.form.rank == 1 || !storage.is_output || space.extents[0] % aligned == 0;
}

/// Whether `outer` continues `inner` in every operand, so that the two can be merged.
bool continues(const Axis& inner, const Axis& outer) {
  for (size_t k = 0; k < inner.strides.size(); ++k) {
    int64_t next = 0;
    if (__builtin_mul_overflow(inner.strides[k], inner.extent, &next)) return false;
    if (outer.strides[k] != next) return false;
  }
  return true;
}

}  // namespace

Access access_of(const IterationSpace& space, size_t k, const OperandStorage& storage) {
  const int64_t stride = space.strides[k][0];
  if (storage.is_table) return stride == 0 ? Access::table : Access::tables;
  if (stride == 0) return Access::uniform;
  if (!is_sub_byte(storage.element)) {
    return stride == 1 ? Access::contiguous : Access::strided;
  }
  return stride == 1 && rows_are_whole_bytes(space, k, storage) ? Access::contiguous
                                                                : Access::bitwise;
}

std::string_view name_of(Access access) {
  constexpr std::string_view names[] = {"contiguous", "strided", "bitwise", "uniform", "periodic",
                                        "repeated",   "table",   "tables",  "column"};
  return names[static_cast<size_t>(access)];
}

bool has_streaming_stores(const Target& target, ElementType element) {
  if (!is_sub_byte(element)) return true;
  const int packed_bytes = target.vector_bits() / 8 * bits_of(element) / 8;
  return packed_bytes == 16 || packed_bytes == 32;
}

bool NestForm::has(Access wanted) const {
  return std::ranges::find(access, wanted) != access.end();
}

IterationSpace iteration_space(const Dims& extents, std::span<const Dims> strides,
                               std::span<const OperandStorage> storage) {
  std::vector<Axis> merged;
  for (Axis& axis : ordered_axes(extents, strides)) {
    if (!merged.empty() && continues(merged.back(), axis)) {
      merged.back().extent *= axis.extent;
    } else {
      merged.push_back(std::move(axis));
    }
  }
  if (merged.empty()) {
    merged.push_back({1, {}});
    for (const OperandStorage& each : storage) merged[0].strides.push_back(each.is_table ? 0 : 1);
  }

  IterationSpace space;
  space.form.rank = static_cast<int>(merged.size());
  space.strides.resize(strides.size());
  for (size_t a = 0; a < merged.size(); ++a) {
    space.extents.push_back(merged[a].extent);
    for (size_t k = 0; k < strides.size(); ++k) space.strides[k][a] = merged[a].strides[k];
  }
  for (size_t k = 0; k < strides.size(); ++k) {
    space.form.access.push_back(access_of(space, k, storage[k]));
  }
  if (space.form.has(Access::bitwise)) space.form = bitwise_form(space.form, storage);
  return space;
}

NestForm bitwise_form(const NestForm& form, std::span<const OperandStorage> storage) {
  NestForm changed = form;
  for (size_t k = 0; k < storage.size(); ++k) {
    const bool by_bytes = changed.access[k] == Access::contiguous;
    if (is_sub_byte(storage[k].element) && by_bytes) changed.access[k] = Access::bitwise;
  }
  // The main loop of a tile may begin anywhere in a period.
  if (changed.has(Access::bitwise)) changed.baked_period = 0;
  return changed;
}

namespace {

/// A step of elements in the unit that the access counts: elements or bytes.
int64_t step_of(ElementType element, Access access, int64_t elements) {
  if (counts_elements(access, element)) return elements;
  if (is_sub_byte(element)) return storage_byte(element, elements);
  return static_cast<int64_t>(static_cast<uint64_t>(elements) *
                              static_cast<uint64_t>(bits_of(element) / 8));
}

}  // namespace

std::vector<int64_t> pack_arguments(std::span<const OperandStorage> storage,
                                    const IterationSpace& space) {
  const ArgumentLayout layout(storage.size(), space.form.rank);
  std::vector<int64_t> words(layout.words(), 0);
  words[layout.period()] = space.period;
  for (int axis = 0; axis < space.form.rank; ++axis) {
    words[layout.extent(axis)] = space.extents[axis];
    for (size_t k = 0; k < storage.size(); ++k) {
      const auto& strides = space.strides[k];
      const auto at = static_cast<size_t>(axis);
      // The innermost loop counts elements and leaves pointers where they are.
      const auto behind = axis >= 2 ? static_cast<uint64_t>(space.extents[axis - 1]) *
                                          static_cast<uint64_t>(strides[at - 1])
                                    : 0;
      // Steps may be negative: addresses are added modulo 2^64.
      const auto step = static_cast<int64_t>(static_cast<uint64_t>(strides[at]) - behind);
      words[layout.step(k, axis)] = step_of(storage[k].element, space.form.access[k], step);
    }
  }
  return words;
}

}  // namespace castor::jit
