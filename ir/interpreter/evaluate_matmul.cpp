// SPDX-License-Identifier: Apache-2.0
// Matrix products, as their formula is written: for batch d, row m and column n,
//   y[d, m, n] = sum over k of (a[d, m, k] - a_zero_point[d, m]) * (b[d, k, n] - b_zero_point[d,
//   n])
// modulo 2^32.
#include "ir/interpreter/evaluators.hpp"
#include "ir/shape/matmul.hpp"

namespace castor {

namespace {

int32_t number_of(uint64_t bits, ElementType type) {
  return type == ElementType::i8 ? static_cast<int8_t>(bits) : static_cast<uint8_t>(bits);
}

/// The index in a dense tensor that repeats its element along axes of extent 1.
int64_t index_of(const Dims& at, const Dims& extents) {
  int64_t index = 0;
  for (int axis = 0; axis < extents.rank(); ++axis) {
    index = index * extents[axis] + (extents[axis] == 1 ? 0 : at[axis]);
  }
  return index;
}

/// A row of a, or a column of b, less its zero point.
class Line {
 public:
  /// `at`: the batch, then the line. `step`: from one k to the next; `pitch`: from line to line.
  Line(const Tensor& tensor, const Tensor* zero_points, const MatmulSide& side, const Dims& at,
       int64_t depth, int64_t step, int64_t pitch)
      : tensor_(tensor), step_(step) {
    const int64_t line = at[at.rank() - 1];
    begin_ = index_of(at, side.batch) * side.lines * depth + line * pitch;
    if (!zero_points) return;
    const auto zero_point = static_cast<size_t>(index_of(at, side.zero_points));
    zero_ = number_of(zero_points->elements[zero_point], tensor.element);
  }

  int32_t operator[](int64_t k) const {
    const auto index = static_cast<size_t>(begin_ + k * step_);
    return number_of(tensor_.elements[index], tensor_.element) - zero_;
  }

 private:
  const Tensor& tensor_;
  int64_t begin_ = 0;
  int64_t step_;
  int32_t zero_ = 0;
};

const Dims* extents_of(const Tensor* tensor) { return tensor ? &tensor->shape : nullptr; }

Dims with(Dims batch, int64_t line) {
  batch.push_back(line);
  return batch;
}

}  // namespace

void evaluate_matmul_integer(const Operation&, Operands operands, Results results) {
  const MatmulGeometry geometry = matmul_geometry(operands[0]->shape, operands[1]->shape,
                                                  extents_of(operands[2]), extents_of(operands[3]))
                                      .value();
  const int64_t depth = geometry.depth;
  const int64_t columns = geometry.b.lines;
  Dims batch = Dims::filled(geometry.batch.rank(), 0);
  const size_t count = result_count(results[0]);
  std::vector<uint64_t>& y = results[0].elements;
  y.reserve(count);
  while (y.size() < count) {
    for (int64_t m = 0; m < geometry.a.lines; ++m) {
      const Line row(*operands[0], operands[2], geometry.a, with(batch, m), depth, 1, depth);
      for (int64_t n = 0; n < columns; ++n) {
        const Line column(*operands[1], operands[3], geometry.b, with(batch, n), depth, columns, 1);
        uint32_t sum = 0;
        for (int64_t k = 0; k < depth; ++k) sum += static_cast<uint32_t>(row[k] * column[k]);
        y.push_back(sum);
      }
    }
    for (int axis = batch.rank() - 1; axis >= 0; --axis) {  // the next batch
      if (++batch[axis] < geometry.batch[axis]) break;
      batch[axis] = 0;
    }
  }
}

}  // namespace castor
