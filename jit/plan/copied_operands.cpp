// SPDX-License-Identifier: Apache-2.0
#include "jit/plan/copied_operands.hpp"

#include <algorithm>

#include "ir/types/storage.hpp"

namespace castor::jit {

namespace {

/// Copies of rows of at most this many elements cost less than a loop over the rows.
constexpr int64_t max_copied_of_a_row = 6;
/// Longer rows take less time than copies of repeated elements. (Without masks, whole rows do: a
/// remainder takes a few ns for each of its elements.)
constexpr int64_t max_short_row = 96;
constexpr int min_iteration_chunks = 4;
/// Copies of bits are so fast that they pay for long rows, too, where rows begin or end inside
/// bytes. Where they do not, for rows that end in a remainder, and are short, or have no masks.
constexpr int64_t max_packed_row = 1024;
constexpr int64_t max_packed_row_of_bytes = 255;
constexpr int64_t max_packed_row_with_masks = 31;
constexpr int64_t remainder_unit = 32;
constexpr size_t max_copies = 4;

/// Operands whose rows do not follow one another, or repeat elements; nothing where one of them
/// cannot be copied. `packed`: also sub-byte ones.
std::vector<CopiedOperand> apart(const Nest& nest, const IterationSpace& space, bool packed) {
  std::vector<CopiedOperand> copies;
  for (size_t k = 0; k < nest.operands(); ++k) {
    const int64_t along_row = space.strides[k][0];
    const int64_t to_next_row = space.strides[k][1];
    if (along_row == 0 && to_next_row == 0) continue;
    if (nest.is_table(k)) return {};
    if (along_row == 1 && to_next_row == space.extents[0]) continue;
    if (!is_sub_byte(nest.element(k))) {
      copies.push_back({k, TileCopyKind::strided});
    } else if (packed && along_row == 1 && is_bit_string(nest.element(k))) {
      copies.push_back({k, TileCopyKind::packed});
    } else {
      return {};
    }
  }
  return copies;
}

/// Operands whose rows have gaps, where rows are so short that copies pay.
std::vector<CopiedOperand> gapped_operands(const Nest& nest, const IterationSpace& space) {
  std::vector<CopiedOperand> copies;
  for (size_t k = 0; k < nest.operands(); ++k) {
    const auto& strides = space.strides[k];
    if (nest.is_table(k)) continue;
    const bool is_repeated = strides[0] == 0 || strides[1] == 0;  // without a gap
    const bool follow = strides[1] == strides[0] * space.extents[0];
    if (is_repeated || follow) continue;
    if (is_sub_byte(nest.element(k))) return {};
    copies.push_back({k, TileCopyKind::strided});
  }
  const int64_t copied = static_cast<int64_t>(copies.size()) * space.extents[0];
  if (copied > max_copied_of_a_row) copies.clear();
  return copies;
}

int64_t max_row_to_pack(const IterationSpace& space, const Target& target) {
  if (space.form.has(Access::bitwise)) return max_packed_row;
  if (space.extents[0] % remainder_unit == 0) return 0;
  return target.has_avx512() ? max_packed_row_with_masks : max_packed_row_of_bytes;
}

/// Where rows of sub-byte elements do not follow one another.
std::vector<CopiedOperand> packed_operands(const Nest& nest, const IterationSpace& space,
                                           const Target& target) {
  std::vector<CopiedOperand> copies = apart(nest, space, true);
  const auto packed = std::ranges::count(copies, TileCopyKind::packed, &CopiedOperand::kind);
  if (packed == 0) return {};
  int64_t max_row = max_row_to_pack(space, target);
  if (packed < std::ssize(copies)) max_row = std::min(max_row, max_short_row);
  return space.extents[0] <= max_row ? copies : std::vector<CopiedOperand>();
}

/// Operands that repeat elements along short rows, or from row to row, which code without masks
/// would do in remainders, a few elements at a time.
std::vector<CopiedOperand> broadcast_operands(const Nest& nest, const IterationSpace& space,
                                              const Target& target) {
  if (target.has_avx512() || space.extents[0] > max_short_row) return {};
  const int lanes = target.vector_bits() / nest.program.widest_bits();
  if (space.extents[0] % (min_iteration_chunks * lanes) == 0) return {};
  return apart(nest, space, false);
}

/// Beside strided operands: all others, where these are rows of sub-byte elements or one element,
/// so that the code does a tile as one row.
std::vector<CopiedOperand> other_packed_operands(const Nest& nest, const IterationSpace& space,
                                                 int axis) {
  if (axis == 0) return {};
  std::vector<CopiedOperand> copies;
  for (size_t k = 0; k < nest.operands(); ++k) {
    if (space.form.access[k] == Access::strided) continue;
    const int64_t along_row = space.strides[k][0];
    const int64_t to_next_row = space.strides[k][static_cast<size_t>(axis)];
    if (along_row == 0 && to_next_row == 0) continue;
    if (space.form.access[k] != Access::bitwise || along_row != 1) return {};
    if (!is_bit_string(nest.element(k))) return {};
    copies.push_back({k, TileCopyKind::packed});
  }
  return copies;
}

}  // namespace

bool is_transposed(const IterationSpace& space, size_t operand, int axis) {
  return axis > 0 && space.form.access[operand] == Access::strided &&
         space.strides[operand][static_cast<size_t>(axis)] == 1;
}

std::vector<CopiedOperand> strided_operands(const Nest& nest, const IterationSpace& space,
                                            int axis) {
  std::vector<CopiedOperand> copies;
  for (size_t k = 0; k < nest.operands(); ++k) {
    if (space.form.access[k] != Access::strided) continue;
    const bool transposed = is_transposed(space, k, axis);
    copies.push_back({k, transposed ? TileCopyKind::transposed : TileCopyKind::strided});
  }
  const std::vector<CopiedOperand> packed = other_packed_operands(nest, space, axis);
  copies.insert(copies.end(), packed.begin(), packed.end());
  return copies;
}

std::vector<CopiedOperand> operands_of_short_rows(const Nest& nest, const IterationSpace& space,
                                                  const Target& target) {
  if (space.form.rank == 1) return {};
  std::vector<CopiedOperand> copies = gapped_operands(nest, space);
  if (!copies.empty() || space.extents[0] * space.extents[1] < min_tile_elements) return copies;
  copies = packed_operands(nest, space, target);
  if (copies.empty()) copies = broadcast_operands(nest, space, target);
  return copies.size() <= max_copies ? copies : std::vector<CopiedOperand>();
}

}  // namespace castor::jit
