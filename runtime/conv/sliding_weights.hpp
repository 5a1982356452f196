// SPDX-License-Identifier: Apache-2.0
// The weights of depthwise and grouped convolutions as kernels read them: inside runtime/conv only.
#pragma once

#include "runtime/conv/sliding.hpp"

namespace castor::detail {

/// Weights, row-major, and their zero points; null: there are none.
struct WeightData {
  const std::byte* weights = nullptr;
  const std::byte* zero_points = nullptr;
};

inline int32_t number_of(std::byte byte, bool is_signed) {
  return is_signed ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
}

/// Of an output channel's weights.
inline int32_t zero_point_of(const ConvolutionOperands& operands, const WeightData& from,
                             int64_t m) {
  if (from.zero_points == nullptr) return 0;
  return number_of(from.zero_points[operands.zero_points_per_channel ? m : 0],
                   operands.w_is_signed);
}

/// The products that do for these weights.
SlidingProducts products_of(const ConvolutionGeometry& geometry,
                            const ConvolutionOperands& operands, jit::ProductEngine engine,
                            const WeightData& from);

/// The data at the next cache line.
template <class T>
T* at_next_line(T* data) {
  constexpr uintptr_t line = 64;
  const auto past = reinterpret_cast<uintptr_t>(data) % line;
  return data + (past == 0 ? 0 : (line - past) / sizeof(T));
}

/// Panels of one slice of the filter.
inline size_t panels_of_slice(const jit::DepthwisePlan& plan) {
  return static_cast<size_t>(plan.geometry.out_channels);
}
inline size_t panels_of_slice(const jit::GroupedNhwcPlan& plan) { return plan.vectors.size(); }
/// Dwords of a panel.
inline size_t panel_dwords(const jit::DepthwisePlan& plan) {
  return static_cast<size_t>(plan.form.weight_dwords());
}
inline size_t panel_dwords(const jit::GroupedNhwcPlan& plan) {
  return static_cast<size_t>(plan.form.panel_vectors() * plan.lanes);
}
/// Panels of all slices, by slice.
template <class Plan>
size_t panel_count(const Plan& plan) {
  return static_cast<size_t>(plan.slices) * panels_of_slice(plan);
}

/// Packed weights, and what sums begin with.
template <class Int>
struct PackedPanels {
  std::span<Int> panels;  ///< by slice; begin at a cache line
  std::span<Int> sums;    ///< by slice and output channel: of weights less the zero point
};

template <class Plan>
size_t packed_sums(const Plan& plan) {
  return static_cast<size_t>(plan.slices * plan.geometry.out_channels);
}
/// Dwords of all that PackedPanels has, and of what is skipped to the next cache line.
template <class Plan>
size_t packed_dwords(const BoundSliding<Plan>& bound) {
  constexpr size_t to_next_line = 15;
  return to_next_line + panel_count(bound.plan) * panel_dwords(bound.plan) +
         packed_sums(bound.plan);
}
/// Its parts, from the next cache line after `data` on.
template <class Plan, class Int>
PackedPanels<Int> packed_panels(const BoundSliding<Plan>& bound, Int* data) {
  data = at_next_line(data);
  const size_t dwords = panel_count(bound.plan) * panel_dwords(bound.plan);
  return {{data, dwords}, {data + dwords, packed_sums(bound.plan)}};
}

/// Packs weights for products that do.
void pack_weights(const BoundDepthwise& bound, const SlidingProducts& products,
                  const WeightData& from, const PackedPanels<int32_t>& to);
void pack_weights(const BoundGroupedNhwc& bound, const SlidingProducts& products,
                  const WeightData& from, const PackedPanels<int32_t>& to);
/// First values of sums, from those of the weights: what the input's zero point times the weights
/// gives, less.
void set_starts(const BoundDepthwise& bound, const SlidingProducts& products,
                const std::byte* x_zero_point, std::span<const int32_t> sums,
                std::span<int32_t> starts);
void set_starts(const BoundGroupedNhwc& bound, const SlidingProducts& products,
                const std::byte* x_zero_point, std::span<const int32_t> sums,
                std::span<jit::NhwcVector> starts);

}  // namespace castor::detail
