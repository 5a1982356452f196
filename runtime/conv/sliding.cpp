// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/sliding.hpp"

#include <algorithm>

namespace castor::detail {

namespace {

/// The products that calls may need whose weights are not known.
std::vector<SlidingProducts> possible_products(const ConvolutionOperands& operands,
                                               jit::ProductEngine engine) {
  std::vector<SlidingProducts> all = {{}};
  if (engine == jit::ProductEngine::i16_pairs ||
      (operands.w_zero_point < 0 && operands.w_is_signed)) {
    return all;
  }
  all.push_back({.signed_input = operands.x_is_signed, .subtracts_window_sums = true});
  if (operands.x_is_signed) all.push_back({.signed_input = true});
  return all;
}

/// The constant weights; null where calls bring them, or their zero points.
WeightData known_weights(const ConvolutionOperands& operands,
                         std::span<const std::byte* const> constants) {
  if (constants[1] == nullptr || !is_known(operands.w_zero_point, constants)) return {};
  return {constants[1], data_of(operands.w_zero_point, constants)};
}

/// Finds the kernels of a plan for all these products; those that add only for filters of several
/// slices. They apply the epilogue; null: none.
template <class Plan>
Status find_codes(BoundSliding<Plan>& bound, std::span<const SlidingProducts> all, CodeCache& cache,
                  const jit::TileEpilogue* epilogue) {
  const Plan& plan = bound.plan;
  for (const SlidingProducts& products : all) {
    for (const bool adds : {false, true}) {
      if (adds && plan.slices == 1) continue;
      auto spec = plan.spec;
      spec.signed_input = products.signed_input;
      spec.flips_input = bound.operands.x_is_signed && !products.signed_input;
      spec.subtracts_window_sums = products.subtracts_window_sums;
      spec.adds = adds;
      auto code = cache.get(spec, bound.target, epilogue);
      if (!code.ok()) return code.error();
      bound.codes[products.signed_input][products.subtracts_window_sums][adds] =
          std::move(code).value();
    }
  }
  return {};
}

/// What decides where packing puts a weight, and in what form.
template <class Plan>
WeightForm weight_form(const BoundSliding<Plan>& bound) {
  const Plan& plan = bound.plan;
  WeightForm form(BoundSliding<Plan>::Spec::name, bound.target, bound.operands.w_is_signed);
  form.add(plan.geometry.groups, plan.geometry.out_channels, plan.geometry.group_channels(),
           plan.slices, plan.rows.kernel, plan.columns.kernel, plan.panel_lanes(), plan.weight_step,
           bound.products.signed_input, bound.products.subtracts_window_sums);
  for (const jit::PackedWeights& weights : plan.row_weights) form.add(weights.first, weights.mask);
  if constexpr (BoundSliding<Plan>::is_nhwc) {
    form.add(plan.spec.repeats);
    for (const jit::NhwcVector& vector : plan.vectors) {
      form.add(vector.channel, vector.input, vector.channels());
    }
  }
  return form;
}

/// Packs what is known.
template <class Plan>
Status pack_constants(BoundSliding<Plan>& bound, std::span<const std::byte* const> constants,
                      const WeightSharing& sharing) {
  const ConvolutionOperands& operands = bound.operands;
  const WeightData known = known_weights(operands, constants);
  if (known.weights != nullptr) {
    const auto pack = [&](int32_t* data) {
      pack_weights(bound, bound.products, known, bound.panels_at(data));
    };
    const WeightSources from = {operands.w_zero_point, operands.zero_points_per_channel};
    Result<PackedDwords> packed =
        share_weights(sharing, weight_form(bound), from, bound.packed_lanes(), pack);
    if (!packed.ok()) return packed.error();
    bound.packed = std::move(packed).value();
    if (is_known(operands.x_zero_point, constants)) {
      bound.starts.resize(bound.start_lanes());
      set_starts(operands, bound.products, data_of(operands.x_zero_point, constants),
                 {bound.panels_at(bound.packed.data()).sums, bound.sums()},
                 at_next_line(bound.starts.data()));
    }
  } else {
    bound.scratch_bytes += 4 * bound.packed_lanes();
  }
  if (bound.starts.empty()) bound.scratch_bytes += 4 * bound.start_lanes();
  return {};
}

}  // namespace

template <class Plan>
Result<std::shared_ptr<const BoundSliding<Plan>>> bind_sliding(
    Plan plan, const ConvolutionOperands& operands, std::span<const std::byte* const> constants,
    const jit::Target& target, CodeCache& cache, const jit::TileEpilogue* epilogue,
    const WeightSharing& sharing) {
  auto bound = std::make_shared<BoundSliding<Plan>>();
  bound->plan = std::move(plan);
  bound->target = target;
  bound->operands = operands;
  bound->applies_epilogue = epilogue != nullptr;
  std::vector<SlidingProducts> products;
  const WeightData known = known_weights(operands, constants);
  if (known.weights == nullptr) {
    products = possible_products(operands, bound->plan.spec.engine);
  } else {
    bound->products = products_of(bound->plan.geometry, operands, bound->plan.spec.engine, known);
    products = {bound->products};
  }
  if (Status status = find_codes(*bound, products, cache, epilogue); !status) {
    return status.error();
  }
  if (Status status = pack_constants(*bound, constants, sharing); !status) return status.error();
  return std::shared_ptr<const BoundSliding<Plan>>(std::move(bound));
}

template Result<std::shared_ptr<const BoundDepthwise>> bind_sliding(
    jit::DepthwisePlan, const ConvolutionOperands&, std::span<const std::byte* const>,
    const jit::Target&, CodeCache&, const jit::TileEpilogue*, const WeightSharing&);
template Result<std::shared_ptr<const BoundGroupedNhwc>> bind_sliding(
    jit::GroupedNhwcPlan, const ConvolutionOperands&, std::span<const std::byte* const>,
    const jit::Target&, CodeCache&, const jit::TileEpilogue*, const WeightSharing&);

}  // namespace castor::detail
