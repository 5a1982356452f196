// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/sliding.hpp"

#include <algorithm>

#include "runtime/conv/sliding_weights.hpp"

namespace castor::detail {

namespace {

struct WeightRange {
  int32_t min = 0;
  int32_t max = 0;
};

WeightRange range_of(const std::byte* weights, int64_t count, bool is_signed) {
  const uint8_t flip = is_signed ? 0x80 : 0;  // keeps the order
  uint8_t min = 255;
  uint8_t max = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto weight = static_cast<uint8_t>(std::to_integer<uint8_t>(weights[i]) ^ flip);
    min = std::min(min, weight);
    max = std::max(max, weight);
  }
  return {min - flip, max - flip};
}

/// The products that calls may need whose weights are not known.
std::vector<SlidingProducts> possible_products(const ConvolutionOperands& operands,
                                               jit::ProductEngine engine) {
  std::vector<SlidingProducts> all = {{}};
  if (engine == jit::ProductEngine::i16_pairs ||
      (operands.w_zero_point < 0 && operands.w_is_signed))
    return all;
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
      auto form = plan.form;
      form.signed_input = products.signed_input;
      form.flips_input = bound.operands.x_is_signed && !products.signed_input;
      form.subtracts_window_sums = products.subtracts_window_sums;
      form.adds = adds;
      auto code = cache.get(form, bound.target, epilogue);
      if (!code.ok()) return code.error();
      bound.codes[products.signed_input][products.subtracts_window_sums][adds] =
          std::move(code).value();
    }
  }
  return {};
}

/// What decides where packing puts a weight, and in what form.
WeightForm weight_form(const BoundDepthwise& bound) {
  const jit::DepthwisePlan& plan = bound.plan;
  WeightForm form("depthwise", bound.target, bound.operands.w_is_signed);
  return form.add(plan.geometry.out_channels, plan.slices, plan.rows.kernel, plan.columns.kernel,
                  plan.form.weight_dwords(), bound.products.signed_input,
                  bound.products.subtracts_window_sums);
}

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

/// Packs what is known.
template <class Plan>
Status pack_constants(BoundSliding<Plan>& bound, std::span<const std::byte* const> constants,
                      const WeightSharing& sharing) {
  using Start = typename BoundSliding<Plan>::Start;
  const ConvolutionOperands& operands = bound.operands;
  const WeightData known = known_weights(operands, constants);
  const size_t starts = panel_count(bound.plan);
  if (known.weights != nullptr) {
    const auto pack = [&](int32_t* data) {
      pack_weights(bound, bound.products, known, packed_panels(bound, data));
    };
    const WeightSources from = {operands.w_zero_point, operands.zero_points_per_channel};
    Result<PackedDwords> packed =
        share_weights(sharing, weight_form(bound), from, packed_dwords(bound), pack);
    if (!packed.ok()) return packed.error();
    bound.packed = std::move(packed).value();
    if (is_known(operands.x_zero_point, constants)) {
      bound.starts.resize(starts);
      set_starts(bound, bound.products, data_of(operands.x_zero_point, constants),
                 packed_panels(bound, bound.packed.data()).sums, bound.starts);
    }
  } else {
    bound.scratch_bytes += 4 * packed_dwords(bound);
  }
  // And as much as to the next cache line.
  if (bound.starts.empty()) bound.scratch_bytes += starts * sizeof(Start) + 64;
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
    products = possible_products(operands, bound->plan.form.engine);
  } else {
    bound->products = products_of(bound->plan.geometry, operands, bound->plan.form.engine, known);
    products = {bound->products};
  }
  if (Status status = find_codes(*bound, products, cache, epilogue); !status) {
    return status.error();
  }
  if (Status status = pack_constants(*bound, constants, sharing); !status) return status.error();
  return std::shared_ptr<const BoundSliding<Plan>>(std::move(bound));
}

SlidingProducts products_of(const ConvolutionGeometry& geometry,
                            const ConvolutionOperands& operands, jit::ProductEngine engine,
                            const WeightData& from) {
  if (engine == jit::ProductEngine::i16_pairs ||
      (operands.w_is_signed && from.zero_points == nullptr))
    return {};
  int64_t of_channel = geometry.group_channels();
  for (const ConvolutionAxis& axis : geometry.axes) of_channel *= axis.kernel;
  const bool differ = from.zero_points != nullptr && operands.zero_points_per_channel;
  const int64_t count = differ ? geometry.out_channels : 1;  // of zero points
  const int64_t weights = differ ? of_channel : of_channel * geometry.out_channels;  // of each
  int32_t min = 0;  // of the differences
  int32_t max = 0;
  for (int64_t m = 0; m < count; ++m) {
    const WeightRange range = range_of(from.weights + m * weights, weights, operands.w_is_signed);
    const int32_t zero_point = zero_point_of(operands, from, m);
    min = std::min(min, range.min - zero_point);
    max = std::max(max, range.max - zero_point);
  }
  if (min >= -128 && max <= 127) return {};
  return {.signed_input = operands.x_is_signed,
          .subtracts_window_sums = !operands.x_is_signed || min < 0 || max > 255};
}

template Result<std::shared_ptr<const BoundDepthwise>> bind_sliding(
    jit::DepthwisePlan, const ConvolutionOperands&, std::span<const std::byte* const>,
    const jit::Target&, CodeCache&, const jit::TileEpilogue*, const WeightSharing&);
template Result<std::shared_ptr<const BoundGroupedNhwc>> bind_sliding(
    jit::GroupedNhwcPlan, const ConvolutionOperands&, std::span<const std::byte* const>,
    const jit::Target&, CodeCache&, const jit::TileEpilogue*, const WeightSharing&);

}  // namespace castor::detail
