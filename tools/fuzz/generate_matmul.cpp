// SPDX-License-Identifier: Apache-2.0
// Drawing `matmul_integer`: products of a few thousand multiplications with zero points of every
// form and batches that broadcast, and functions around them.
#include "tools/fuzz/generate_matmul.hpp"

#include <algorithm>

#include "ir/shape/matmul.hpp"
#include "tools/fuzz/generate.hpp"
#include "tools/fuzz/generate_operations.hpp"

namespace castor::fuzz {

namespace {

constexpr int64_t max_products = 20'000;
constexpr std::array byte_types = {ElementType::u8, ElementType::i8};

bool is_byte(ElementType type) { return admits(OperandClass::byte, type); }

/// Batch axes of b for those of a: leading ones gone or added, some of extent 1, and others where
/// a has 1.
Dims draw_batch(Random& random, const Dims& a) {
  const int axes = std::max(a.rank() - 2, 0);
  const int gone = random.percent(30) ? static_cast<int>(random.between(0, axes)) : 0;
  Dims batch;
  if (random.percent(10) && axes + 3 <= max_drawn_rank) batch.push_back(random.between(1, 3));
  for (int axis = gone; axis < axes; ++axis) {
    const int64_t extent = a[axis] == 1 && random.percent(40) ? random.between(1, 3) : a[axis];
    batch.push_back(random.percent(30) ? 1 : extent);
  }
  return batch;
}

/// Extents of zero points of a matrix: one, one for each line, or one for each line of a batch.
Dims draw_zero_points(Random& random, const Dims& matrix, int depth_axis) {
  const int rank = matrix.rank();
  const size_t kind = random.below(100);
  if (kind < 30) return {};
  if (kind < 40 || rank == 1) return {1};
  const int line_axis = 2 * rank - 3 - depth_axis;  // the other one of the last two
  if (kind < 70) return {matrix[line_axis]};
  Dims zero_points = matrix;
  zero_points[depth_axis] = 1;
  for (int64_t& extent : zero_points) extent = random.percent(20) ? 1 : extent;
  return zero_points;
}

int64_t products_of(const DrawnMatmul& drawn) {
  const Result<MatmulGeometry> geometry = matmul_geometry(drawn.a, drawn.b, nullptr, nullptr);
  if (!geometry) return INT64_MAX;
  return element_count(geometry->output_extents()).value_or(0) *
         std::max<int64_t>(geometry->depth, 1);
}

/// Whether it is quickly interpreted; without rows or columns, whether its operands are.
bool is_small(const DrawnMatmul& drawn) {
  const int64_t elements = std::max(element_count(drawn.a).value_or(INT64_MAX),
                                    element_count(drawn.b).value_or(INT64_MAX));
  return std::max(elements, products_of(drawn)) <= max_products;
}

}  // namespace

Dims draw_matrix(Random& random) {
  const auto extent = [&](int64_t max) { return random.between(random.percent(2) ? 0 : 1, max); };
  const int64_t depth = extent(random.percent(20) ? 300 : 40);
  if (random.percent(8)) return {depth};
  Dims shape;
  for (int64_t axes = random.percent(50) ? 0 : random.between(1, max_drawn_rank - 2); axes > 0;
       --axes) {
    shape.push_back(extent(3));
  }
  shape.push_back(extent(random.percent(30) ? 1 : 12));
  shape.push_back(depth);
  return shape;
}

DrawnMatmul draw_matmul(Random& random, const Dims& a) {
  DrawnMatmul drawn = {.a = a, .b = {}, .a_zero = {}, .b_zero = {}};
  const int64_t depth = a[a.rank() - 1];
  for (int attempt = 0; attempt < 20; ++attempt) {
    const bool is_vector = random.percent(10);
    drawn.b = is_vector ? Dims{} : draw_batch(random, a);
    drawn.b.push_back(depth);
    if (!is_vector) {
      drawn.b.push_back(random.percent(2) ? 0 : random.between(1, random.percent(30) ? 80 : 20));
    }
    if (products_of(drawn) <= max_products) break;
  }
  drawn.a_zero = draw_zero_points(random, drawn.a, drawn.a.rank() - 1);
  drawn.b_zero = draw_zero_points(random, drawn.b, std::max(drawn.b.rank() - 2, 0));
  return drawn;
}

bool OperationDrawer::multiply(size_t a, const DrawnMatmul& drawn, const MatmulOperands& given) {
  a = as_bytes(a);
  if (!is_byte(program_.element_of(a)) || products_of(drawn) > max_products) return false;
  if (!given.b && !add_constant(random_.pick(byte_types), drawn.b)) return false;
  const size_t b = given.b ? as_bytes(*given.b) : last();
  if (!is_byte(program_.element_of(b))) return false;
  const size_t a_zero = zero_point(given.a_zero, program_.element_of(a), drawn.a_zero);
  const size_t b_zero = zero_point(given.b_zero, program_.element_of(b), drawn.b_zero);
  OperationSpec operation{.op = OpKind::matmul_integer, .operands = {a, b, a_zero, b_zero}};
  while (operation.operands.back() == no_operand && random_.percent(80)) {
    operation.operands.pop_back();
  }
  return add(std::move(operation));
}

/// A product of a value that has axes, with a constant.
bool OperationDrawer::multiply_any() {
  std::vector<size_t> matrices;
  for (size_t value : values_of(OperandClass::any)) {
    if (program_.shape_of(value).rank() > 0) matrices.push_back(value);
  }
  if (matrices.empty()) return false;
  const size_t a = pick_value(matrices);
  return multiply(a, draw_matmul(random_, program_.shape_of(a)), {});
}

void OperationDrawer::draw_matmul_of(ElementType a_type) {
  DrawnMatmul drawn = draw_matmul(random_, draw_matrix(random_));
  while (!is_small(drawn)) drawn = draw_matmul(random_, draw_matrix(random_));
  const Result<MatmulGeometry> geometry = matmul_geometry(drawn.a, drawn.b, nullptr, nullptr);
  const auto element = [&] {
    return random_.percent(70) ? random_.pick(byte_types) : draw_element(random_);
  };
  space_ = drawn.a;
  const size_t a = add_input(a_type, drawn.a);
  MatmulOperands given;
  if (random_.percent(60)) given.b = add_input(element(), drawn.b);
  if (random_.percent(40)) given.a_zero = add_input(element(), drawn.a_zero);
  if (random_.percent(40)) given.b_zero = add_input(element(), drawn.b_zero);
  space_ = geometry->output_extents();
  std::vector<size_t> beside;
  const int rank = space_.rank();
  for (int64_t count = random_.between(0, 3); count > 0; --count) {  // scales, biases, residuals
    Dims shape = space_;
    if (rank > 0 && random_.percent(30)) shape[rank - 1] = 1;
    for (int axis = 0; axis + 1 < rank && random_.percent(60); ++axis) shape[axis] = 1;
    beside.push_back(add_input(random_.percent(60) ? ElementType::f32 : element(), shape));
  }
  if (!multiply(a, drawn, given)) return;
  const size_t y = last();
  if (!beside.empty()) draw_chain(y, beside, 1 + random_.below(8));
  if (random_.percent(20)) draw_many(1 + random_.below(3));
  if (random_.percent(15)) multiply_any();
}

}  // namespace castor::fuzz
