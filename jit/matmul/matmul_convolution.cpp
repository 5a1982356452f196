// SPDX-License-Identifier: Apache-2.0
#include "jit/matmul/matmul_convolution.hpp"

#include <algorithm>

#include "ir/support/integer_math.hpp"
#include "jit/conv/dot/dot_plan.hpp"
#include "jit/core/core_tuning.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {

namespace {

bool is_one(int64_t extent) { return extent == 1; }

int64_t product(const Dims& extents) {
  int64_t count = 1;
  for (const int64_t extent : extents) count = saturated_product(count, extent);
  return count;
}

ConvolutionAxis pixels_of(int64_t count) { return {.input = count, .kernel = 1, .output = count}; }

/// Rows of a, all of them or those of each image.
MatmulConvolution with_rows_as_pixels(const MatmulGeometry& matmul, int64_t images,
                                      int64_t pixels) {
  return {.image = MatmulImage::a,
          .geometry = {.layout = ConvolutionLayout::nhwc,
                       .batch = images,
                       .channels = matmul.depth,
                       .out_channels = matmul.b.lines,
                       .axes = {pixels_of(pixels)}},
          .a_batch = matmul.a.batch,
          .b_batch = matmul.b.batch,
          .result = {images, pixels, matmul.b.lines}};
}

bool has_one_zero_point(const MatmulSide& side) {
  return std::ranges::all_of(side.zero_points, is_one);
}

/// Whether an axis along which `inner` alone has several matrices comes after one along which
/// `outer` has: then batches are not in the order of images, groups and rows.
bool is_out_of_order(const Dims& outer, const Dims& inner) {
  bool is_after = false;
  for (int axis = 0; axis < outer.rank(); ++axis) {
    if (is_after && outer[axis] == 1 && inner[axis] != 1) return true;
    is_after = is_after || outer[axis] != 1;
  }
  return false;
}

/// The same with axes in reverse order.
bool is_out_of_order_reversed(Dims outer, Dims inner) {
  std::reverse(outer.begin(), outer.end());
  std::reverse(inner.begin(), inner.end());
  return is_out_of_order(outer, inner);
}

MatmulConvolution with_columns_as_pixels(const MatmulGeometry& matmul) {
  const Dims& of_a = matmul.a.batch;
  const Dims& of_b = matmul.b.batch;
  MatmulConvolution convolution = {
      .a_batch = is_out_of_order(of_a, of_b) ? matmul.batch : of_a,
      .b_batch = is_out_of_order_reversed(of_b, of_a) ? matmul.batch : of_b};
  int64_t images = 1;
  int64_t groups = 1;
  int64_t rows = matmul.a.lines;
  for (int axis = 0; axis < matmul.batch.rank(); ++axis) {
    const bool is_image = convolution.a_batch[axis] == 1;
    const bool is_row = !is_image && convolution.b_batch[axis] == 1;
    int64_t& count = is_image ? images : is_row ? rows : groups;
    count = saturated_product(count, matmul.batch[axis]);
  }
  const int64_t channels = saturated_product(groups, rows);
  convolution.geometry = {.layout = ConvolutionLayout::nchw,
                          .batch = images,
                          .channels = saturated_product(groups, matmul.depth),
                          .out_channels = channels,
                          .groups = std::max<int64_t>(groups, 1),
                          .axes = {pixels_of(matmul.b.lines)}};
  convolution.result = {images, channels, matmul.b.lines};
  return convolution;
}

}  // namespace

std::optional<MatmulConvolution> matmul_convolution(const MatmulGeometry& matmul,
                                                    const MatmulStorage& storage) {
  const bool a_has_one = has_one_zero_point(matmul.a);
  const bool b_has_one = has_one_zero_point(matmul.b);
  const bool b_is_single = std::ranges::all_of(matmul.b.batch, is_one);
  const bool gains = storage.b_is_constant || storage.b_is_transposed;
  if (a_has_one && b_is_single && (gains || !b_has_one)) {
    return with_rows_as_pixels(matmul, 1, saturated_product(product(matmul.batch), matmul.a.lines));
  }
  if (b_has_one) return with_columns_as_pixels(matmul);
  return std::nullopt;
}

std::optional<MatmulConvolution> matmul_by_image(const MatmulGeometry& matmul,
                                                 const MatmulStorage& storage,
                                                 const Target& target) {
  const int64_t images = product(matmul.batch);
  const bool has_ones = has_one_zero_point(matmul.a) && has_one_zero_point(matmul.b);
  const bool is_broadcast = product(matmul.b.batch) != images;
  const bool has_rows_of_b = storage.b_is_transposed && !storage.b_is_constant && !is_broadcast;
  if (!has_rows_of_b || !has_ones || images < 2 || matmul.a.is_vector) return std::nullopt;
  if (matmul.a.lines > target.tuning().dense.max_rows_by_image) return std::nullopt;
  MatmulConvolution convolution = with_rows_as_pixels(matmul, images, matmul.a.lines);
  convolution.geometry.has_weights_by_image = true;
  convolution.a_batch = convolution.b_batch = matmul.batch;
  const ConvolutionProblem problem = {.geometry = convolution.geometry,
                                      .has_constant_weights = false};
  return plan_dot(problem, target) ? std::optional(std::move(convolution)) : std::nullopt;
}

LikelyMatmuls::LikelyMatmuls(const Function& function) : is_constant_(constant_values(function)) {}

std::optional<MatmulConvolution> LikelyMatmuls::of(const Operation& matmul,
                                                   const BoundShapes& shapes) const {
  const auto extents = [&](size_t operand) {
    const ValueId value = matmul.operands[operand];
    return value == no_value ? nullptr : &shapes.values[value];
  };
  const Result<MatmulGeometry> geometry =
      matmul_geometry(*extents(0), *extents(1), extents(2), extents(3));
  if (!geometry) return std::nullopt;
  const ValueId zero_point = matmul.operands[3];
  const bool b_is_constant =
      is_constant_[matmul.operands[1]] && (zero_point == no_value || is_constant_[zero_point]);
  return matmul_convolution(*geometry, {.b_is_constant = b_is_constant});
}

}  // namespace castor::jit
