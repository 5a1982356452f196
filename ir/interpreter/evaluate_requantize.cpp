// SPDX-License-Identifier: Apache-2.0
// Requantization: each element by the parameters of its slice.
#include <array>

#include "ir/interpreter/evaluators.hpp"
#include "ir/numerics/requantize.hpp"
#include "ir/verify/requantize.hpp"

namespace castor {

namespace {

int32_t number_of(uint64_t bits, ElementType type) {
  return type == ElementType::i8 ? static_cast<int8_t>(bits) : static_cast<int16_t>(bits);
}

/// One side's parameters: of its type, or of the operands that stand for them.
class SideParameters {
 public:
  SideParameters(const QuantizationPtr& quantization, Operands operands, size_t first_operand,
                 const Dims& shape) {
    if (!quantization) return;
    format_ = quantization->format;
    if (quantization->is_per_axis()) {
      slices_ = shape[quantization->axis];
      inner_ = dense_strides(shape)[quantization->axis];
    }
    for (size_t r = 0; r < quantization_rules.size(); ++r) {
      const QuantizationRule& rule = quantization_rules[r];
      const Tensor* operand = operands[first_operand + r];
      if (operand) {
        for (uint64_t bits : operand->elements) {
          values_[r].push_back(number_of(bits, operand->element));
        }
      } else if (const QuantizationParameter& given = (*quantization).*rule.parameter) {
        values_[r] = *given;
      }
    }
  }

  const std::vector<int32_t>& scales() const { return values_[0]; }

  /// The parameters of the element's slice.
  numerics::SliceQuantization at(size_t element) const {
    numerics::SliceQuantization result{.format = format_};
    const size_t slice =
        slices_ == 1 ? 0 : element / static_cast<size_t>(inner_) % static_cast<size_t>(slices_);
    if (!values_[0].empty()) result.scale = values_[0][slice];
    if (!values_[1].empty()) result.frac = values_[1][slice];
    if (!values_[2].empty()) result.zero_point = values_[2][slice];
    return result;
  }

 private:
  std::optional<QuantizedFormat> format_;
  std::array<std::vector<int32_t>, 3> values_;  ///< in the order of quantization_rules
  int64_t slices_ = 1;
  int64_t inner_ = 1;  ///< elements per index of the axis
};

}  // namespace

void evaluate_requantize(const Operation& operation, Operands operands, Results results) {
  const Tensor& x = *operands[0];
  Tensor& result = results[0];
  const SideParameters from(x.quantization, operands, source_parameter(0), x.shape);
  const SideParameters to(result.quantization, operands, destination_parameter(0), x.shape);
  if (Status status = check_scales("source", from.scales()); !status) throw Refusal{status.error()};
  if (Status status = check_scales("destination", to.scales()); !status) {
    throw Refusal{status.error()};
  }
  const RequantizeOptions options = requantize_options(operation);
  result.elements.reserve(x.elements.size());
  for (size_t i = 0; i < x.elements.size(); ++i) {
    result.elements.push_back(numerics::requantize(x.elements[i], from.at(i), to.at(i), options));
  }
}

}  // namespace castor
