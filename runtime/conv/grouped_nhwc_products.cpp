// SPDX-License-Identifier: Apache-2.0
// Which products do for weights of grouped convolutions whose channels lie side by side, and the
// sums that they begin with.
#include <algorithm>

#include "jit/conv/dot_product.hpp"
#include "runtime/conv/grouped_nhwc.hpp"

namespace castor::detail {

namespace {

bool has_bytes(const BoundGroupedNhwc& grouped) {
  return jit::product_engine_of(grouped.target) == jit::ProductEngine::u8_i8_dot;
}

}  // namespace

std::vector<DepthwiseProducts> possible_products(const BoundGroupedNhwc& grouped) {
  const ConvolutionOperands& operands = grouped.operands;
  std::vector<DepthwiseProducts> all = {{}};
  if (!has_bytes(grouped) || (operands.w_zero_point < 0 && operands.w_is_signed)) return all;
  all.push_back({.signed_input = operands.x_is_signed, .subtracts_window_sums = true});
  if (operands.x_is_signed) all.push_back({.signed_input = true});
  return all;
}

DepthwiseProducts products_of(const BoundGroupedNhwc& grouped, const std::byte* w,
                              const std::byte* zero_points) {
  const ConvolutionOperands& operands = grouped.operands;
  if (!has_bytes(grouped) || (operands.w_is_signed && zero_points == nullptr)) return {};
  const jit::GroupedNhwcPlan& plan = grouped.plan;
  const int64_t of_channel =
      plan.geometry.group_channels() * plan.slices * plan.rows.kernel * plan.columns.kernel;
  const bool differ = zero_points != nullptr && operands.zero_points_per_channel;
  const int64_t count = differ ? plan.geometry.out_channels : 1;  // of zero points
  const int64_t weights = differ ? of_channel : of_channel * plan.geometry.out_channels;
  int32_t min = 0;  // of the differences
  int32_t max = 0;
  for (int64_t m = 0; m < count; ++m) {
    const WeightRange range = range_of(w + m * weights, weights, operands.w_is_signed);
    const int32_t zero_point =
        zero_points == nullptr ? 0 : number_of(zero_points[m], operands.w_is_signed);
    min = std::min(min, range.min - zero_point);
    max = std::max(max, range.max - zero_point);
  }
  if (min >= -128 && max <= 127) return {};
  return {.signed_input = operands.x_is_signed,
          .subtracts_window_sums = !operands.x_is_signed || min < 0 || max > 255};
}

size_t vector_count(const BoundGroupedNhwc& grouped) {
  return static_cast<size_t>(grouped.plan.slices) * grouped.plan.vectors.size();
}

void set_vectors(const BoundGroupedNhwc& grouped, const DepthwiseProducts& products,
                 const std::byte* x_zero_point, std::span<const int32_t> sums,
                 std::span<jit::NhwcVector> vectors) {
  const bool is_signed = grouped.operands.x_is_signed;
  const int32_t zero = x_zero_point == nullptr ? 0 : number_of(*x_zero_point, is_signed);
  const bool flips = is_signed && !products.signed_input;
  const auto as_multiplied = static_cast<uint32_t>(zero + (flips ? 128 : 0));
  const auto channels = static_cast<size_t>(grouped.plan.geometry.out_channels);
  for (size_t i = 0; i < vectors.size(); ++i) {
    const size_t count = grouped.plan.vectors.size();
    jit::NhwcVector vector = grouped.plan.vectors[i % count];
    const size_t first = i / count * channels + static_cast<size_t>(vector.channel);
    for (size_t lane = 0; lane < static_cast<size_t>(vector.channels()); ++lane) {
      const auto sum = static_cast<uint32_t>(sums[first + lane]);
      vector.start[lane] = static_cast<int32_t>(0 - as_multiplied * sum);
    }
    vectors[i] = vector;
  }
}

}  // namespace castor::detail
