// SPDX-License-Identifier: Apache-2.0
// The geometry of matrix products. One set of rules serves types and bound extents: an extent that
// is not known yet is Dim::unknown_extent, and whatever depends on it is not checked.
#include "ir/shape/matmul.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "ir/shape/broadcast.hpp"
#include "ir/shape/byte_operands.hpp"

namespace castor {

namespace {

constexpr detail::ByteOperandNames operand_names = {"a", "b", "a_zero_point", "b_zero_point"};

/// Extents of operands, as far as they are known; null: absent.
using Operands = std::array<const Dims*, 4>;

bool is_known(int64_t extent) { return extent != Dim::unknown_extent; }

/// Whether both are known, but differ.
bool differ(int64_t a, int64_t b) { return is_known(a) && is_known(b) && a != b; }

Error mistake(const std::string& detail) {
  return {ErrorCode::invalid_function,
          fmt::format("{}: {}", name_of(OpKind::matmul_integer), detail)};
}

// ---- Axes: a is [D.., M, K] or [K], b is [D.., K, N] or [K].

int depth_axis(size_t operand, int rank) { return operand == 0 || rank == 1 ? rank - 1 : rank - 2; }

/// Only of an operand that is no vector.
int line_axis(size_t operand, int rank) { return operand == 0 ? rank - 2 : rank - 1; }

int batch_axes(int rank) { return std::max(rank - 2, 0); }

int64_t depth_of(size_t operand, const Dims& extents) {
  return extents[depth_axis(operand, extents.rank())];
}

int64_t lines_of(size_t operand, const Dims& extents) {
  return extents.rank() == 1 ? 1 : extents[line_axis(operand, extents.rank())];
}

// ---- Rules.

std::string rank_mistake(size_t operand) {
  return fmt::format("{} has rank 0, expected 1 or more", operand_names[operand]);
}

Status check_ranks(const Operands& operands) {
  for (size_t i = 0; i < 2; ++i) {
    if (operands[i]->rank() == 0) return mistake(rank_mistake(i));
  }
  return {};
}

Status check_depths(const Dims& a, const Dims& b) {
  if (!differ(depth_of(0, a), depth_of(1, b))) return {};
  const int of_a = depth_axis(0, a.rank());
  const int of_b = depth_axis(1, b.rank());
  return mistake(
      fmt::format("axis {} of a is {}, expected {} as axis {} of b", of_a, a[of_a], b[of_b], of_b));
}

/// Batch axes are aligned right; extents are equal, or one of them is 1.
Status check_batches(const Dims& a, const Dims& b) {
  const int common = std::min(batch_axes(a.rank()), batch_axes(b.rank()));
  for (int i = 1; i <= common; ++i) {
    const int of_a = batch_axes(a.rank()) - i;
    const int of_b = batch_axes(b.rank()) - i;
    if (!differ(a[of_a], b[of_b]) || a[of_a] == 1 || b[of_b] == 1) continue;
    return mistake(
        fmt::format("axis {} of a is {}, axis {} of b is {}: batches broadcast by numpy's rule, "
                    "expected equal extents, or one of them 1",
                    of_a, a[of_a], of_b, b[of_b]));
  }
  return {};
}

/// What is wrong with parameters of one operand (MatmulParameter) that is no scalar, or nothing.
std::optional<std::string> mistake_of(const MatmulParameter& of, const Dims& extents,
                                      const Dims& zero_point) {
  const size_t operand = of.operand;
  const std::string_view name = of.name;
  const int rank = zero_point.rank();
  if (rank == 0) return std::nullopt;
  const int64_t lines = lines_of(operand, extents);
  if (rank == 1) {
    if (!differ(zero_point[0], 1) || !differ(zero_point[0], lines)) return std::nullopt;
    return fmt::format("{} has {} entries, expected 1, or {} as the {} of {}", name, zero_point[0],
                       lines, operand == 0 ? "rows" : "columns", operand_names[operand]);
  }
  if (rank != extents.rank()) {
    return fmt::format("{} has rank {}, expected 0, 1, or {} as {}", name, rank, extents.rank(),
                       operand_names[operand]);
  }
  for (int axis = 0; axis < rank; ++axis) {
    const bool along_depth = axis == depth_axis(operand, rank);
    const bool fits =
        !differ(zero_point[axis], 1) || (!along_depth && !differ(zero_point[axis], extents[axis]));
    if (fits) continue;
    const std::string expected =
        along_depth ? "1" : fmt::format("1, or {} as {}", extents[axis], operand_names[operand]);
    return fmt::format("axis {} of {} is {}, expected {}", axis, name, zero_point[axis], expected);
  }
  return std::nullopt;
}

Status check_zero_point(size_t operand, const Dims& extents, const Dims& zero_point) {
  const auto wrong = mistake_of({operand, operand_names[operand + 2]}, extents, zero_point);
  return wrong ? mistake(*wrong) : Status();
}

Status check_operands(const Operands& operands) {
  Status status = check_ranks(operands);
  if (status) status = check_depths(*operands[0], *operands[1]);
  if (status) status = check_batches(*operands[0], *operands[1]);
  for (size_t i = 0; i < 2 && status; ++i) {
    if (operands[i + 2]) status = check_zero_point(i, *operands[i], *operands[i + 2]);
  }
  return status;
}

// ---- Everything together.

template <class Axes>
Axes batch_of(const Axes& shape, int rank) {
  Axes batch;
  for (int axis = 0; axis < batch_axes(rank); ++axis) batch.push_back(shape[axis]);
  return batch;
}

/// The batch axes of an operand or of zero points of its rank, with ones before them.
Dims aligned_batch(const Dims& extents, int rank) {
  const int own = batch_axes(extents.rank());
  Dims batch = Dims::filled(rank - own, 1);
  for (int axis = 0; axis < own; ++axis) batch.push_back(extents[axis]);
  return batch;
}

MatmulSide side_of(size_t operand, const Dims& extents, const Dims* zero_point, int batch_rank) {
  MatmulSide side = {.batch = aligned_batch(extents, batch_rank),
                     .lines = lines_of(operand, extents),
                     .is_vector = extents.rank() == 1,
                     .zero_points = Dims::filled(batch_rank + 1, 1)};
  if (!zero_point || zero_point->rank() == 0) return side;
  const int rank = zero_point->rank();
  if (rank > 1) side.zero_points = aligned_batch(*zero_point, batch_rank);
  if (rank > 1) side.zero_points.push_back(1);
  side.zero_points[batch_rank] = rank == 1 ? (*zero_point)[0] : lines_of(operand, *zero_point);
  return side;
}

}  // namespace

Dims MatmulGeometry::output_extents() const {
  Dims extents = batch;
  if (!a.is_vector) extents.push_back(a.lines);
  if (!b.is_vector) extents.push_back(b.lines);
  return extents;
}

Result<MatmulGeometry> matmul_geometry(const Dims& a, const Dims& b, const Dims* a_zero_point,
                                       const Dims* b_zero_point) {
  if (Status status = check_operands({&a, &b, a_zero_point, b_zero_point}); !status) {
    return status.error();
  }
  const int batch_rank = batch_axes(std::max(a.rank(), b.rank()));
  MatmulGeometry geometry = {.a = side_of(0, a, a_zero_point, batch_rank),
                             .b = side_of(1, b, b_zero_point, batch_rank),
                             .batch = {},
                             .depth = depth_of(0, a)};
  for (int axis = 0; axis < batch_rank; ++axis) {
    const int64_t of_a = geometry.a.batch[axis];
    geometry.batch.push_back(of_a == 1 ? geometry.b.batch[axis] : of_a);
  }
  return geometry;
}

std::optional<std::string> matmul_mistake(const MatmulParameter& parameter, const Shape& operand,
                                          const Shape& shape) {
  if (operand.empty()) return rank_mistake(parameter.operand);
  return mistake_of(parameter, detail::known_extents(operand), detail::known_extents(shape));
}

Result<TensorType> matmul_type(std::span<const TensorType* const> operands) {
  Status status = detail::check_byte_operands(OpKind::matmul_integer, operand_names, operands);
  if (!status) return status.error();
  std::array<Dims, 4> extents;
  Operands known{};
  for (size_t i = 0; i < known.size(); ++i) {
    if (!operands[i]) continue;
    extents[i] = detail::known_extents(operands[i]->shape);
    known[i] = &extents[i];
  }
  if (status = check_operands(known); !status) return status.error();
  const Shape& a = operands[0]->shape;
  const Shape& b = operands[1]->shape;
  const Shape batches[] = {batch_of(a, extents[0].rank()), batch_of(b, extents[1].rank())};
  const Shape* const both[] = {&batches[0], &batches[1]};
  Result<Shape> shape = broadcast_shapes(OpKind::matmul_integer, {}, both);
  if (!shape) return shape.error();
  if (a.size() > 1) shape->push_back(a[a.size() - 2]);
  if (b.size() > 1) shape->push_back(b.back());
  return TensorType{ElementType::i32, std::move(shape).value()};
}

}  // namespace castor
