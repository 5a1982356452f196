// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/grouped_nhwc.hpp"

#include "runtime/conv/share_products.hpp"

namespace castor::detail {

namespace {

Status find_codes(BoundGroupedNhwc& bound, CodeCache& cache, const jit::TileEpilogue* epilogue) {
  const std::vector<DepthwiseProducts> packed = {bound.products};
  return find_product_codes(
      bound.plan.form, bound.packed.empty() ? possible_products(bound) : packed,
      bound.operands.x_is_signed, bound.plan.slices, bound.codes, {cache, bound.target, epilogue});
}

/// What decides where packing puts a weight, and in what form.
WeightForm weight_form(const BoundGroupedNhwc& bound) {
  const jit::GroupedNhwcPlan& plan = bound.plan;
  const jit::GroupedNhwcForm& of = plan.form;
  WeightForm form("grouped, channels last", bound.target, bound.operands.w_is_signed);
  form.add(plan.geometry.groups, plan.geometry.out_channels, plan.geometry.group_channels(),
           plan.slices, plan.rows.kernel, plan.columns.kernel, plan.lanes, plan.held, of.rows,
           of.columns, of.column_stride, of.outputs, of.parts, of.repeats,
           bound.products.signed_input, bound.products.subtracts_window_sums);
  for (const jit::NhwcVector& vector : plan.vectors) {
    form.add(vector.channel, vector.input, vector.channels());
  }
  return form;
}

Status pack_constants(BoundGroupedNhwc& bound, std::span<const std::byte* const> constants,
                      const WeightSharing& sharing) {
  const ConvolutionOperands& operands = bound.operands;
  const bool packs = constants[1] != nullptr && is_known(operands.w_zero_point, constants);
  if (packs) {
    Status status =
        share_product_weights(bound, constants, sharing, weight_form, packed_nhwc<int32_t>);
    if (!status) return status;
  }
  if (packs && is_known(operands.x_zero_point, constants)) {
    bound.vectors.resize(vector_count(bound));
    set_vectors(bound, bound.products, data_of(operands.x_zero_point, constants),
                packed_nhwc(bound, bound.packed.data()).sums, bound.vectors);
  }
  if (!packs) bound.scratch_bytes += 4 * packed_dwords(bound);
  // And as much to the next line of the cache.
  if (bound.vectors.empty()) {
    bound.scratch_bytes += (vector_count(bound) + 1) * sizeof(jit::NhwcVector);
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const BoundGroupedNhwc>> bind_grouped_nhwc(
    jit::GroupedNhwcPlan plan, const ConvolutionOperands& operands,
    std::span<const std::byte* const> constants, const jit::Target& target, CodeCache& cache,
    const jit::TileEpilogue* epilogue, const WeightSharing& sharing) {
  auto bound = std::make_shared<BoundGroupedNhwc>();
  bound->plan = std::move(plan);
  bound->target = target;
  bound->operands = operands;
  bound->applies_epilogue = epilogue != nullptr;
  if (Status status = pack_constants(*bound, constants, sharing); !status) return status.error();
  if (Status status = find_codes(*bound, cache, epilogue); !status) return status.error();
  return std::shared_ptr<const BoundGroupedNhwc>(std::move(bound));
}

}  // namespace castor::detail
