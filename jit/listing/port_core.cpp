// SPDX-License-Identifier: Apache-2.0
#include "jit/listing/port_core.hpp"

#include "ir/support/enumeration.hpp"
#include "jit/listing/listing.hpp"

namespace castor::jit {

namespace {

/// In the order of `PortModel`.
constexpr std::array<const PortCore*, port_model_count> cores = {
    &zen4_ports, &zen5_ports, &golden_cove_ports, &redwood_cove_ports};

/// In the order of `Cost`.
constexpr std::array<std::string_view, cost_count> cost_names = {
    "same",
    "unmeasured",
    "none",
    "masked_load",
    "masked_store",
    "vector_alu",
    "ternary_logic",
    "vector_min_max",
    "vector_min_max_64",
    "vector_equal_64",
    "vector_greater_64",
    "vector_saturate",
    "vector_average",
    "vector_count_bits",
    "vector_count_zeros",
    "vector_shuffle",
    "vector_shuffle_32",
    "vector_shuffle_float",
    "vector_align",
    "vector_pack",
    "vector_unpack",
    "vector_permute",
    "vector_permute_16",
    "vector_permute_two",
    "vector_permute_two_16",
    "vector_permute_two_8",
    "vector_widen",
    "vector_narrow",
    "vector_insert",
    "vector_insert_load",
    "vector_extract",
    "vector_extract_store",
    "vector_broadcast",
    "vector_broadcast_load",
    "vector_broadcast_lanes",
    "vector_expand",
    "vector_shift",
    "vector_shift_bytes",
    "vector_rotate",
    "vector_multiply",
    "vector_multiply_32",
    "vector_multiply_64",
    "vector_sad",
    "vector_horizontal",
    "float_horizontal",
    "vector_multishift",
    "vector_affine",
    "vector_test",
    "dot_product",
    "blend_by_vector",
    "blend_floats_by_vector",
    "blend_floats",
    "blend_words",
    "float_multiply",
    "float_fused",
    "float_estimate",
    "float_add",
    "float_compare",
    "float_fixup",
    "float_compare_mask",
    "float_compare_flags",
    "float_round",
    "float_scale",
    "float_exponent",
    "float_convert",
    "float_convert_width",
    "float_to_bf16",
    "float_to_half",
    "float_to_gpr",
    "gpr_to_float",
    "divide_f32",
    "divide_f64",
    "sqrt_f32",
    "sqrt_f64",
    "half_arithmetic",
    "half_compare_mask",
    "half_round",
    "half_convert",
    "half_convert_32",
    "half_convert_64",
    "divide_f16",
    "sqrt_f16",
    "mask_compare",
    "mask_from_vector",
    "mask_to_vector",
    "mask_logic",
    "mask_test",
    "mask_add",
    "mask_shift",
    "mask_load",
    "mask_to_gpr",
    "gpr_to_mask",
    "vector_to_gpr",
    "gpr_to_vector",
    "gpr_insert",
    "gpr_insert_load",
    "gpr_extract",
    "gpr_extract_store",
    "gpr_broadcast",
    "gpr_alu",
    "gpr_carry",
    "gpr_count",
    "gpr_trailing_zeros",
    "gpr_bits",
    "gpr_extract_bits",
    "gpr_exchange",
    "gpr_flags_read",
    "gpr_set",
    "gpr_shift",
    "gpr_multiply",
    "gpr_deposit",
    "gpr_divide",
    "jump",
    "control_register",
    "zero_upper",
};

}  // namespace

const PortCore& port_core(PortModel model) {
  const auto number = static_cast<size_t>(model);
  return *cores[number < cores.size() ? number : 0];
}

PortModel port_model_of(Core core, const CpuIdentity& identity) {
  const PortModel model = tuning_of(core).port_model;
  const bool is_granite_rapids = identity.vendor == "GenuineIntel" && identity.family == 6 &&
                                 (identity.model == 0xad || identity.model == 0xae);
  if (model == PortModel::golden_cove && is_granite_rapids) return PortModel::redwood_cove;
  return model;
}

std::string_view name_of(Cost cost) { return name_in(cost_names, cost); }

std::string names_of(const PortCore& core, Ports ports) {
  std::string text;
  for (size_t i = 0; i < core.ports.size(); ++i) {
    if ((ports >> i & 1) == 0) continue;
    if (!text.empty()) text += ' ';
    text += core.ports[i];
  }
  return text;
}

}  // namespace castor::jit
