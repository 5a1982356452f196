// SPDX-License-Identifier: Apache-2.0
#include "tests/support/matmul_cases.hpp"

#include "tests/support/convolution_cases.hpp"

namespace castor::test {

namespace {

constexpr int64_t max_products = 60'000;

using Numbers = std::vector<int64_t>;

Numbers numbers_of(const Dims& shape) { return {shape.begin(), shape.end()}; }

/// An operand of the formula: an element for each batch, row and column, which repeats along axes
/// of extent 1, aligned right.
struct Operand {
  const Patterns* tensor = nullptr;  ///< null: 0
  Numbers extents;

  int64_t at(const Numbers& batch, int64_t row, int64_t column) const {
    if (tensor == nullptr) return 0;
    Numbers all = batch;
    all.push_back(row);
    all.push_back(column);
    size_t index = 0;
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      const int64_t position = all[all.size() - extents.size() + axis];
      index = index * static_cast<size_t>(extents[axis]) +
              static_cast<size_t>(extents[axis] == 1 ? 0 : position);
    }
    const auto byte = static_cast<uint8_t>(tensor->elements[index]);
    return tensor->type == ElementType::i8 ? static_cast<int8_t>(byte) : byte;
  }
};

Operand operand_of(const std::optional<Patterns>& tensor) {
  if (!tensor) return {};
  return {&*tensor, numbers_of(tensor->shape)};
}

int64_t draw(std::mt19937_64& random, int64_t min, int64_t max) {
  return min + static_cast<int64_t>(random() % static_cast<uint64_t>(max - min + 1));
}

bool percent(std::mt19937_64& random, int64_t chance) { return draw(random, 1, 100) <= chance; }

/// Extents of zero points; `lines` and `depth` are axes of a matrix.
Dims draw_zero_points(std::mt19937_64& random, const Dims& matrix, int lines, int depth) {
  switch (draw(random, 0, matrix.rank() > 1 ? 4 : 1)) {
    case 0: return {};
    case 1: return {1};
    case 2: return {matrix[lines]};
    default: break;
  }
  Dims shape = matrix;
  shape[depth] = 1;
  for (int64_t& extent : shape) extent = percent(random, 15) ? 1 : extent;
  return shape;
}

/// Extents of a and b.
std::pair<Dims, Dims> draw_shapes(std::mt19937_64& random) {
  const auto extent = [&](int64_t max) { return draw(random, percent(random, 3) ? 0 : 1, max); };
  const int64_t depth = extent(percent(random, 20) ? 300 : 40);
  Dims a;
  Dims b;
  const int64_t axes = percent(random, 40) ? 0 : draw(random, 1, 3);
  const int64_t of_a = percent(random, 70) ? axes : draw(random, 0, axes);
  const int64_t of_b = percent(random, 70) ? axes : draw(random, 0, axes);
  for (int64_t axis = axes; axis > 0; --axis) {
    const int64_t batch = extent(4);
    if (axis <= of_a) a.push_back(percent(random, 25) ? 1 : batch);
    if (axis <= of_b) b.push_back(percent(random, 25) ? 1 : batch);
  }
  if (!a.empty() || percent(random, 90)) a.push_back(extent(percent(random, 30) ? 1 : 20));
  a.push_back(depth);
  const bool b_is_vector = b.empty() && percent(random, 10);
  b.push_back(depth);
  if (!b_is_vector) b.push_back(extent(percent(random, 20) ? 90 : 20));
  return {a, b};
}

/// As many products as the largest batch has.
int64_t products_of(const Dims& a, const Dims& b) {
  const int64_t depth = std::max<int64_t>(a[a.rank() - 1], 1);
  return element_count(a).value_or(0) * std::max<int64_t>(element_count(b).value_or(0) / depth, 1);
}

}  // namespace

FunctionPtr function_of(const MatmulCase& row, const MatmulForm& form) {
  FunctionBuilder builder("product");
  const auto operand = [&](const char* name, const Patterns& tensor, bool is_constant) {
    Shape shape = to_shape(tensor.shape);
    if (is_constant) {
      return builder.constant({tensor.type, shape}, samples::pack(tensor.type, tensor.elements));
    }
    if (form.unknown_extents) std::ranges::fill(shape, Dim::any());
    return builder.parameter(name, {tensor.type, shape});
  };
  const auto zero_point = [&](const char* name, const std::optional<Patterns>& tensor) {
    return tensor ? operand(name, *tensor, form.constant_zero_points) : no_value;
  };
  const ValueId a = operand("a", row.a, false);
  const ValueId b = operand("b", row.b, form.constant_b);
  const ValueId a_zero = zero_point("az", row.a_zero_point);
  const ValueId b_zero = zero_point("bz", row.b_zero_point);
  builder.result(builder.matmul_integer(a, b, a_zero, b_zero));
  const Result<FunctionPtr> function = builder.finish();
  EXPECT_TRUE(function) << function.error().to_string();
  return function ? *function : nullptr;
}

std::vector<Patterns> parameters_of(const MatmulCase& row, const MatmulForm& form) {
  std::vector<Patterns> parameters = {row.a};
  if (!form.constant_b) parameters.push_back(row.b);
  if (form.constant_zero_points) return parameters;
  if (row.a_zero_point) parameters.push_back(*row.a_zero_point);
  if (row.b_zero_point) parameters.push_back(*row.b_zero_point);
  return parameters;
}

Patterns direct_matmul(const MatmulCase& row) {
  Operand a = {&row.a, numbers_of(row.a.shape)};
  Operand b = {&row.b, numbers_of(row.b.shape)};
  if (a.extents.size() == 1) a.extents.insert(a.extents.begin(), 1);
  if (b.extents.size() == 1) b.extents.push_back(1);
  Operand a_zero = operand_of(row.a_zero_point);
  const Operand b_zero = operand_of(row.b_zero_point);
  if (a_zero.extents.size() == 1) a_zero.extents.push_back(1);  // one for each row
  const size_t rank = std::max(a.extents.size(), b.extents.size());
  Numbers batch(rank - 2, 1);
  for (const Operand* operand : {&a, &b}) {
    const size_t missing = rank - operand->extents.size();
    for (size_t axis = missing; axis < batch.size(); ++axis) {
      const int64_t extent = operand->extents[axis - missing];
      if (extent != 1) batch[axis] = extent;
    }
  }
  Dims shape{std::span(batch)};
  const int64_t rows = a.extents[a.extents.size() - 2];
  const int64_t columns = b.extents.back();
  if (row.a.shape.rank() > 1) shape.push_back(rows);
  if (row.b.shape.rank() > 1) shape.push_back(columns);
  Patterns y{ElementType::i32, shape, {}};
  const int64_t count = element_count(shape).value();
  for (int64_t i = 0; i < count; ++i) {
    int64_t left = i / (rows * columns);
    Numbers at(batch.size());
    for (size_t axis = batch.size(); axis-- > 0;) {
      at[axis] = left % batch[axis];
      left /= batch[axis];
    }
    const int64_t m = i / columns % rows;
    const int64_t n = i % columns;
    int64_t sum = 0;
    for (int64_t k = 0; k < a.extents.back(); ++k) {
      sum += (a.at(at, m, k) - a_zero.at(at, m, 0)) * (b.at(at, k, n) - b_zero.at(at, 0, n));
    }
    y.elements.push_back(static_cast<uint32_t>(sum));
  }
  return y;
}

MatmulCase random_matmul(std::mt19937_64& random) {
  std::pair<Dims, Dims> shapes = draw_shapes(random);
  while (products_of(shapes.first, shapes.second) > max_products) shapes = draw_shapes(random);
  const auto& [a, b] = shapes;
  const auto byte = [&] { return percent(random, 50) ? ElementType::i8 : ElementType::u8; };
  MatmulCase row = {.a = random_bytes(random, byte(), a), .b = random_bytes(random, byte(), b)};
  if (percent(random, 65)) {
    const Dims shape = draw_zero_points(random, a, a.rank() - 2, a.rank() - 1);
    row.a_zero_point = random_bytes(random, row.a.type, shape);
  }
  if (percent(random, 65)) {
    const Dims shape = draw_zero_points(random, b, b.rank() - 1, b.rank() - 2);
    row.b_zero_point = random_bytes(random, row.b.type, shape);
  }
  return row;
}

}  // namespace castor::test
