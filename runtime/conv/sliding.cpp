// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/sliding.hpp"

#include <algorithm>

namespace castor::detail {

namespace {

/// The products that calls may need whose weights are not known.
std::vector<SlidingProducts> possible_products(const jit::ConvolutionProblem& problem,
                                               jit::ProductEngine engine) {
  std::vector<SlidingProducts> all = {{}};
  if (!subtracts_window_sums(engine, problem)) return all;
  all.push_back({.signed_input = problem.x_is_signed, .subtracts_window_sums = true});
  if (problem.x_is_signed) all.push_back({.signed_input = true});
  return all;
}

/// The constant weights; null where calls bring them, or their zero points.
WeightData known_weights(const ConvolutionBinding& by) {
  const int zero_points = by.operands.w_zero_point;
  if (by.constants[1] == nullptr || !is_known(zero_points, by.constants)) return {};
  return {by.constants[1], data_of(zero_points, by.constants)};
}

/// Finds the kernels of a plan for all these products; those that add only for filters of several
/// slices.
template <class Plan>
Status find_codes(BoundSliding<Plan>& bound, std::span<const SlidingProducts> all,
                  const ConvolutionBinding& by) {
  const Plan& plan = bound.plan;
  for (const SlidingProducts& products : all) {
    for (const bool adds : {false, true}) {
      if (adds && plan.slices == 1) continue;
      auto spec = plan.spec;
      spec.signed_input = products.signed_input;
      spec.flips_input = bound.operands.x_is_signed && !products.signed_input;
      spec.subtracts_window_sums = products.subtracts_window_sums;
      spec.adds = adds;
      auto code = by.cache.get(spec, bound.target, by.epilogue);
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
Status pack_constants(BoundSliding<Plan>& bound, const WeightData& known,
                      const ConvolutionBinding& by) {
  if (known.weights != nullptr) {
    const auto pack = [&](int32_t* data) {
      pack_weights(bound, bound.products, known, bound.panels_at(data));
    };
    const WeightSources from = {by.operands.w_zero_point, by.operands.zero_points_per_channel};
    Result<PackedDwords> packed =
        share_weights(by.weights, weight_form(bound), from, bound.packed_lanes(), pack);
    if (!packed.ok()) return packed.error();
    bound.packed = std::move(packed).value();
    const int zero_point = by.operands.x_zero_point;
    if (is_known(zero_point, by.constants)) {
      bound.starts.resize(bound.start_lanes());
      set_starts(by.operands, bound.products, data_of(zero_point, by.constants),
                 {bound.panels_at(bound.packed.data()).sums, bound.sums()},
                 at_next_line(bound.starts.data()));
    }
  } else {
    bound.scratch_bytes += 4 * bound.packed_lanes();
  }
  if (bound.starts.empty()) bound.scratch_bytes += 4 * bound.start_lanes();
  return {};
}

template <class Plan>
Result<std::shared_ptr<const BoundSliding<Plan>>> bind_sliding(const Plan& plan,
                                                               const ConvolutionBinding& by) {
  auto bound = std::make_shared<BoundSliding<Plan>>();
  bound->plan = plan;
  bound->target = by.target;
  bound->operands = by.operands;
  bound->applies_epilogue = by.epilogue != nullptr;
  const WeightData known = known_weights(by);
  std::vector<SlidingProducts> products = possible_products(by.problem, plan.spec.engine);
  if (known.weights != nullptr) {
    bound->products = products_of(plan.geometry, by.operands, plan.spec.engine, known);
    products = {bound->products};
  }
  if (Status status = find_codes(*bound, products, by); !status) return status.error();
  if (Status status = pack_constants(*bound, known, by); !status) return status.error();
  return std::shared_ptr<const BoundSliding<Plan>>(std::move(bound));
}

}  // namespace

Result<std::shared_ptr<const BoundDepthwise>> bind_plan(const jit::DepthwisePlan& plan,
                                                        const ConvolutionBinding& by) {
  return bind_sliding(plan, by);
}
Result<std::shared_ptr<const BoundGroupedNhwc>> bind_plan(const jit::GroupedNhwcPlan& plan,
                                                          const ConvolutionBinding& by) {
  return bind_sliding(plan, by);
}

}  // namespace castor::detail
