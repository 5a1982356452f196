// SPDX-License-Identifier: Apache-2.0
#include "runtime/requantize/requantization_parameters.hpp"

#include <cstring>

#include "ir/types/elements.hpp"

namespace castor::detail {

namespace {

using Parameter = int32_t jit::SliceParameters::*;

/// In the order of quantization_rules.
constexpr Parameter source_parameters[] = {&jit::SliceParameters::from_scale,
                                           &jit::SliceParameters::from_frac,
                                           &jit::SliceParameters::from_zero_point};
constexpr Parameter destination_parameters[] = {&jit::SliceParameters::to_scale,
                                                &jit::SliceParameters::to_frac,
                                                &jit::SliceParameters::to_zero_point};

}  // namespace

SliceReader::SliceReader(const BoundRequantization& requantization,
                         std::span<const StepOperand> operands, const CallMemory& memory)
    : from_(requantization.from.quantization), to_(requantization.to.quantization) {
  add(requantization.from, source_parameters, operands, memory);
  add(requantization.to, destination_parameters, operands, memory);
}

void SliceReader::add(const BoundSide& side, std::span<const Parameter> parameters,
                      std::span<const StepOperand> operands, const CallMemory& memory) {
  for (size_t r = 0; r < parameters.size(); ++r) {
    if (side.operands[r] < 0) continue;
    const ElementType element = quantization_rules[r].element;
    const Origin origin = origin_of(operands[static_cast<size_t>(side.operands[r])].origin, memory);
    operands_[count_++] = {.parameter = parameters[r],
                           .data = reinterpret_cast<const std::byte*>(address(origin, element)),
                           .element = element,
                           .step = side.quantization->is_per_axis() ? side.strides[r] : 0};
  }
}

jit::SliceParameters SliceReader::at(int64_t slice) const {
  jit::SliceParameters result = jit::slice_parameters(from_, to_, slice);
  for (const Operand& operand : std::span(operands_).first(count_)) {
    const uint64_t bits = read_element(operand.data, operand.element, slice * operand.step);
    result.*operand.parameter =
        operand.element == ElementType::i8 ? static_cast<int8_t>(bits) : static_cast<int16_t>(bits);
  }
  return result;
}

void ConstantArrays::set(int64_t slice, const jit::SliceConstants& constants) const {
  for (size_t i = 0; i < types.size(); ++i) {
    const auto bytes = static_cast<size_t>(bits_of(types[i]) / 8);
    std::memcpy(data[i] + static_cast<size_t>(slice) * bytes, &constants[i], bytes);
  }
}

void ConstantArrays::repeat() const {
  for (size_t i = 0; i < types.size(); ++i) {
    const size_t once = bytes_of(i) / static_cast<size_t>(copies);
    for (int64_t copy = 1; copy < copies; ++copy) {
      std::memcpy(data[i] + static_cast<size_t>(copy) * once, data[i], once);
    }
  }
}

}  // namespace castor::detail
