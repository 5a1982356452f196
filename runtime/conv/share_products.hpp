// SPDX-License-Identifier: Apache-2.0
// The constant weights of depthwise and grouped layers: packed, or found packed.
#pragma once

#include "runtime/conv/weight_sharing.hpp"

namespace castor::detail {

/// Chooses the products of a layer whose weights are constant, and packs these for them, or finds
/// them packed. `form_of(bound)` says what their layout depends on, the products among it;
/// `parts_of(bound, data)` where they go in it. Throws std::bad_alloc.
template <class Bound, class FormOf, class PartsOf>
Status share_product_weights(Bound& bound, std::span<const std::byte* const> constants,
                             const WeightSharing& sharing, const FormOf& form_of,
                             const PartsOf& parts_of) {
  const ConvolutionOperands& operands = bound.operands;
  const std::byte* zero_points = data_of(operands.w_zero_point, constants);
  bound.products = products_of(bound, constants[1], zero_points);
  const auto pack = [&](int32_t* to) {
    pack_weights(bound, bound.products, constants[1], zero_points, parts_of(bound, to));
  };
  const WeightSources from = {operands.w_zero_point, operands.zero_points_per_channel};
  Result<PackedDwords> packed =
      share_weights(sharing, form_of(bound), from, packed_dwords(bound), pack);
  if (!packed.ok()) return packed.error();
  bound.packed = std::move(packed).value();
  return {};
}

}  // namespace castor::detail
