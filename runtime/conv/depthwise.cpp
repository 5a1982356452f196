// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/depthwise.hpp"

#include "runtime/conv/share_products.hpp"

namespace castor::detail {

namespace {

Status find_codes(BoundDepthwise& bound, const jit::DepthwisePlan& plan, CodeCache& cache,
                  const jit::TileEpilogue* epilogue) {
  const std::vector<DepthwiseProducts> packed = {bound.products};
  return find_product_codes(
      plan.form, bound.packed.empty() ? possible_products(bound.operands, bound.target) : packed,
      bound.operands.x_is_signed, plan.slices, bound.codes, {cache, bound.target, epilogue});
}

/// What decides where packing puts a weight, and in what form.
WeightForm weight_form(const BoundDepthwise& bound) {
  const jit::DepthwisePlan& plan = bound.plan;
  WeightForm form("depthwise", bound.target, bound.operands.w_is_signed);
  form.add(plan.geometry.out_channels, plan.slices, plan.rows.kernel, plan.columns.kernel,
           jit::weight_dwords(plan.form, bound.target), bound.products.signed_input,
           bound.products.subtracts_window_sums);
  return form;
}

Status pack_constants(BoundDepthwise& bound, std::span<const std::byte* const> constants,
                      const WeightSharing& sharing) {
  const ConvolutionOperands& operands = bound.operands;
  const auto starts = static_cast<size_t>(bound.plan.slices * bound.plan.geometry.out_channels);
  const bool packs = constants[1] != nullptr && is_known(operands.w_zero_point, constants);
  if (packs) {
    Status status =
        share_product_weights(bound, constants, sharing, weight_form, depthwise_weights<int32_t>);
    if (!status) return status;
  }
  if (packs && is_known(operands.x_zero_point, constants)) {
    bound.starts.resize(starts);
    set_starts(bound, bound.products, data_of(operands.x_zero_point, constants),
               depthwise_weights(bound, bound.packed.data()).sums, bound.starts);
  }
  bound.scratch_bytes =
      4 * ((packs ? 0 : packed_dwords(bound)) + (bound.starts.empty() ? starts : 0));
  return {};
}

}  // namespace

std::vector<DepthwiseProducts> possible_products(const ConvolutionOperands& operands,
                                                 const jit::Target& target) {
  std::vector<DepthwiseProducts> all = {{}};
  if (!target.supports(jit::Feature::avx512_vnni)) return all;
  if (operands.w_zero_point < 0 && operands.w_is_signed) return all;
  all.push_back({.signed_input = operands.x_is_signed, .subtracts_window_sums = true});
  if (operands.x_is_signed) all.push_back({.signed_input = true});
  return all;
}

Result<std::shared_ptr<const BoundDepthwise>> bind_depthwise(
    jit::DepthwisePlan plan, const ConvolutionOperands& operands,
    std::span<const std::byte* const> constants, const jit::Target& target, CodeCache& cache,
    const jit::TileEpilogue* epilogue, const WeightSharing& sharing) {
  auto bound = std::make_shared<BoundDepthwise>();
  bound->plan = std::move(plan);
  bound->target = target;
  bound->operands = operands;
  bound->applies_epilogue = epilogue != nullptr;
  if (Status status = pack_constants(*bound, constants, sharing); !status) return status.error();
  if (Status status = find_codes(*bound, bound->plan, cache, epilogue); !status) {
    return status.error();
  }
  return std::shared_ptr<const BoundDepthwise>(std::move(bound));
}

}  // namespace castor::detail
