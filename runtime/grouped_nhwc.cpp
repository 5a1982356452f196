// SPDX-License-Identifier: Apache-2.0
#include "runtime/grouped_nhwc.hpp"

namespace castor::detail {

namespace {

Status find_codes(BoundGroupedNhwc& bound, CodeCache& cache, const jit::TileEpilogue* epilogue) {
  const std::vector<DepthwiseProducts> packed = {bound.products};
  return find_product_codes(bound.plan.form,
                            bound.packed.empty() ? possible_products(bound) : packed,
                            bound.operands.x_is_signed, bound.plan.slices, bound.codes,
                            [&](const jit::GroupedNhwcForm& form) {
                              return cache.get_grouped(form, bound.target, epilogue);
                            });
}

void pack_constants(BoundGroupedNhwc& bound, std::span<const std::byte* const> constants) {
  const ConvolutionOperands& operands = bound.operands;
  const bool packs = constants[1] != nullptr && is_known(operands.w_zero_point, constants);
  if (packs) {
    const std::byte* zero_points = data_of(operands.w_zero_point, constants);
    bound.products = products_of(bound, constants[1], zero_points);
    bound.packed.resize(packed_dwords(bound));
    pack_weights(bound, bound.products, constants[1], zero_points,
                 packed_nhwc(bound, bound.packed.data()));
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
}

using Bound = std::shared_ptr<const BoundGroupedNhwc>;

/// `epilogue`: what kernels apply, or null.
Result<Bound> bind_with(const ConvolutionGeometry& geometry, const ConvolutionOperands& operands,
                        std::span<const std::byte* const> constants, const jit::Target& target,
                        CodeCache& cache, const jit::TileEpilogue* epilogue) {
  auto plan = jit::plan_grouped_nhwc(geometry, operands.x_is_signed, target, epilogue);
  if (!plan) return Bound();
  auto bound = std::make_shared<BoundGroupedNhwc>();
  bound->plan = std::move(*plan);
  bound->target = target;
  bound->operands = operands;
  bound->applies_epilogue = epilogue != nullptr;
  pack_constants(*bound, constants);
  if (Status status = find_codes(*bound, cache, epilogue); !status) return status.error();
  return Bound(std::move(bound));
}

}  // namespace

Result<std::shared_ptr<const BoundGroupedNhwc>> bind_grouped_nhwc(
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
