// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/convolution_movement.hpp"

#include <algorithm>

namespace castor::detail {

namespace {

/// Whether a filter of one slice leaves room in a unit for several dwords of input channels.
jit::WeightUnit unit_of_parts(const WeightExtents& extents, int positions) {
  const int64_t max = jit::WeightUnit::max_slots / positions;
  return {.positions = positions,
          .parts = static_cast<int>(std::min(max, extents.dwords)),
          .input_step = positions};
}

/// Whether listed taps take one weight after the other; the last one may have too many places.
bool are_in_order(const jit::ConvPlan& plan) {
  const int held = jit::channels_of_k_group(plan.engine);
  const int64_t weights =
      plan.geometry.group_channels() * plan.slices * plan.rows.kernel * plan.columns.kernel;
  int64_t next = 0;
  for (const jit::TapWeights& tap : plan.tap_weights) {
    for (int i = 0; i < held; ++i, ++next) {
      if (tap[static_cast<size_t>(i)] != (next < weights ? next : -1)) return false;
    }
  }
  return true;
}

}  // namespace

WeightExtents weight_extents(const jit::ConvPlan& plan) {
  WeightExtents extents = {.channels = plan.geometry.group_channels(),
                           .dwords = plan.dwords,
                           .slices = plan.slices,
                           .in_slice = plan.rows.kernel * plan.columns.kernel};
  if (plan.tap_weights.empty()) return extents;
  extents.is_listed = !are_in_order(plan);
  if (extents.is_listed) return extents;
  return {.channels = extents.channels * extents.positions(), .dwords = plan.k_steps()};
}

WeightUnits weight_units(const WeightExtents& extents) {
  constexpr int max = jit::WeightUnit::max_slots;
  constexpr int64_t vector_bytes = 64;
  WeightUnits units;
  if (extents.in_slice > max) {
    units.whole.positions = max;
    units.count = extents.in_slice / max;
    units.last.positions = static_cast<int>(extents.in_slice % max);
    return units;
  }
  units.count = 1;
  units.last.positions = 0;
  units.whole.positions = static_cast<int>(extents.in_slice);
  if (extents.slices == 1) {
    units.whole = unit_of_parts(extents, units.whole.positions);
  } else if (3 * extents.positions() + extents.in_slice <= vector_bytes) {
    units.whole.input_step = static_cast<int>(extents.positions());
  }
  return units;
}

jit::PlaneForm plane_form(const jit::ConvPlan& plan) {
  const int64_t stride = std::min<int64_t>(plan.columns.stride, jit::ConvStore::max_lanes);
  return {.column_stride = static_cast<int>(stride),
          .is_plain = plan.takes_whole_rows() && plan.dwords_hold == jit::DwordsHold::channels,
          .holds_columns = plan.dwords_hold == jit::DwordsHold::columns};
}

Result<MovementCode> find_movement_code(const jit::ConvPlan& plan, const jit::Target& target,
                                        CodeCache& cache) {
  MovementCode found;
  if (plan.engine != jit::ProductEngine::u8_i8_dot) return found;
  const auto find_packer = [&](const jit::WeightUnit& unit,
                               KernelCodePtr<jit::WeightUnit>& code) -> Status {
    if (!jit::can_pack(unit, target)) return {};
    auto packer = cache.get(unit, target);
    if (!packer.ok()) return packer.error();
    code = std::move(packer).value();
    return {};
  };
  const WeightExtents extents = weight_extents(plan);
  if (!extents.is_listed) {
    const WeightUnits units = weight_units(extents);
    if (Status status = find_packer(units.whole, found.weights); !status) return status.error();
    if (Status status = find_packer(units.last, found.last_weights); !status) {
      return status.error();
    }
  }
  if (plan.dwords_hold == jit::DwordsHold::taps) {
    auto filler = cache.get(window_form(plan), target);
    if (!filler.ok()) return filler.error();
    found.windows = std::move(filler).value();
    return found;
  }
  const jit::PlaneForm form = plane_form(plan);
  const bool has_planes =
      plan.geometry.layout == ConvolutionLayout::nchw && plan.source == jit::ConvSource::planes;
  if (has_planes && jit::can_fill(form, target)) {
    auto filler = cache.get(form, target);
    if (!filler.ok()) return filler.error();
    found.planes = std::move(filler).value();
  }
  return found;
}

}  // namespace castor::detail
