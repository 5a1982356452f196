// SPDX-License-Identifier: Apache-2.0
#include "runtime/requantization_parameters.hpp"

#include "ir/elements.hpp"

namespace castor::detail {

int32_t SideReader::Parameter::at(int64_t slice) const {
  const int64_t index = is_per_slice ? slice : 0;
  if (data != nullptr) {
    const uint64_t bits = read_element(data, element, index * stride);
    return element == ElementType::i8 ? static_cast<int8_t>(bits) : static_cast<int16_t>(bits);
  }
  return entries == nullptr ? otherwise : (*entries)[static_cast<size_t>(index)];
}

SideReader::SideReader(const BoundSide& side, const BoundNest* nest, const CallMemory* memory) {
  parameters_[0].otherwise = 1;
  if (!side.quantization) return;
  for (size_t r = 0; r < quantization_rules.size(); ++r) {
    const QuantizationRule& rule = quantization_rules[r];
    Parameter& parameter = parameters_[r];
    parameter.element = rule.element;
    parameter.is_per_slice = side.quantization->is_per_axis();
    if (side.operands[r] >= 0) {
      const auto operand = static_cast<size_t>(side.operands[r]);
      const Origin origin = origin_of(nest->operands[operand], *memory);
      parameter.stride = side.strides[r];
      parameter.data = reinterpret_cast<const std::byte*>(address(origin, rule.element));
    } else if (const auto& given = (*side.quantization).*rule.parameter) {
      parameter.entries = &*given;
    }
  }
}

std::array<int32_t, 3> SideReader::at(int64_t slice) const {
  return {parameters_[0].at(slice), parameters_[1].at(slice), parameters_[2].at(slice)};
}

jit::SliceParameters SliceReader::at(int64_t slice) const {
  const auto [from_scale, from_frac, from_zero_point] = from_.at(slice);
  const auto [to_scale, to_frac, to_zero_point] = to_.at(slice);
  return {.from_scale = from_scale,
          .from_frac = from_frac,
          .from_zero_point = from_zero_point,
          .to_scale = to_scale,
          .to_frac = to_frac,
          .to_zero_point = to_zero_point};
}

}  // namespace castor::detail
