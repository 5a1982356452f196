// SPDX-License-Identifier: Apache-2.0
#include "runtime/depthwise_nhwc.hpp"

namespace castor::detail {

namespace {

Status find_codes(BoundDepthwiseNhwc& bound, CodeCache& cache, const jit::TileEpilogue* epilogue) {
  const std::vector<DepthwiseProducts> packed = {bound.products};
  for (const DepthwiseProducts& products :
       bound.packed.empty() ? possible_products(bound.filter.operands, bound.target) : packed) {
    jit::DepthwiseNhwcForm form = bound.plan.form;
    form.signed_input = products.signed_input;
    form.flips_input = bound.filter.operands.x_is_signed && !products.signed_input;
    form.subtracts_window_sums = products.subtracts_window_sums;
    Result<NestCodePtr> code = cache.get_depthwise(form, bound.target, epilogue);
    if (!code.ok()) return code.error();
    bound.codes[products.signed_input][products.subtracts_window_sums] = std::move(code).value();
  }
  return {};
}

/// The filter alone, as packing for the other layout sees it.
void set_filter(BoundDepthwiseNhwc& bound, const ConvolutionOperands& operands) {
  bound.filter.target = bound.target;
  bound.filter.operands = operands;
  jit::DepthwisePlan& plan = bound.filter.plan;
  plan.geometry = bound.plan.geometry;
  plan.rows = bound.plan.rows;
  plan.columns = bound.plan.columns;
  plan.form.rows = static_cast<int>(plan.rows.kernel);
  plan.form.dwords = static_cast<int>((plan.columns.kernel + 3) / 4);
}

void pack_constants(BoundDepthwiseNhwc& bound, std::span<const std::byte* const> constants) {
  const ConvolutionOperands& operands = bound.filter.operands;
  const bool packs = constants[1] != nullptr && is_known(operands.w_zero_point, constants);
  if (packs) {
    const std::byte* zero_points = data_of(operands.w_zero_point, constants);
    bound.products = products_of(bound.filter, constants[1], zero_points);
    bound.packed.resize(packed_dwords(bound));
    pack_weights(bound, bound.products, constants[1], zero_points,
                 packed_nhwc(bound, bound.packed.data()));
  }
  if (packs && is_known(operands.x_zero_point, constants)) {
    bound.starts.resize(start_dwords(bound));
    set_starts(bound, bound.products, data_of(operands.x_zero_point, constants),
               packed_nhwc(bound, bound.packed.data()).sums, bound.starts);
  }
  bound.scratch_bytes =
      4 * ((packs ? 0 : packed_dwords(bound)) + (bound.starts.empty() ? start_dwords(bound) : 0));
}

using Bound = std::shared_ptr<const BoundDepthwiseNhwc>;

/// `epilogue`: what kernels apply, or null.
Result<Bound> bind_with(const ConvolutionGeometry& geometry, const ConvolutionOperands& operands,
                        std::span<const std::byte* const> constants, const jit::Target& target,
                        CodeCache& cache, const jit::TileEpilogue* epilogue) {
  auto plan = jit::plan_depthwise_nhwc(geometry, operands.x_is_signed, target, epilogue);
  if (!plan) return Bound();
  auto bound = std::make_shared<BoundDepthwiseNhwc>();
  bound->plan = std::move(*plan);
  bound->target = target;
  bound->applies_epilogue = epilogue != nullptr;
  set_filter(*bound, operands);
  pack_constants(*bound, constants);
  if (Status status = find_codes(*bound, cache, epilogue); !status) return status.error();
  return Bound(std::move(bound));
}

}  // namespace

Result<std::shared_ptr<const BoundDepthwiseNhwc>> bind_depthwise_nhwc(
    const ConvolutionGeometry& geometry, const ConvolutionOperands& operands,
    std::span<const std::byte* const> constants, const jit::Target& target, CodeCache& cache,
    const jit::TileEpilogue* epilogue) {
  if (epilogue != nullptr) {
    Result<Bound> bound = bind_with(geometry, operands, constants, target, cache, epilogue);
    const bool is_refused = !bound.ok() && bound.error().code == ErrorCode::unsupported;
    if (!is_refused && (!bound.ok() || *bound != nullptr)) return bound;
  }
  return bind_with(geometry, operands, constants, target, cache, nullptr);
}

}  // namespace castor::detail
