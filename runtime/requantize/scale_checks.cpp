// SPDX-License-Identifier: Apache-2.0
#include "runtime/requantize/scale_checks.hpp"

#include <optional>
#include <unordered_map>

#include "ir/types/elements.hpp"
#include "ir/verify/requantize.hpp"

namespace castor::detail {

namespace {

/// Parameters and constants of one function by value.
class ScaleTensors {
 public:
  ScaleTensors(const Function& function, std::span<const BoundTensor> inputs)
      : function_(function), inputs_(inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) input_[function.parameters[i]] = i;
    for (const Operation& operation : function.operations) {
      if (operation.op == OpKind::constant) constant_[operation.results[0]] = &operation;
    }
  }

  ScaleCheck check_of(ValueId value, std::string_view side) const {
    ScaleCheck check{.side = side};
    if (const auto constant = constant_.find(value); constant != constant_.end()) {
      check.constant = constant->second->data->bytes.data();
      const Shape& shape = function_.type_of(value).shape;
      if (!shape.empty()) check.count = shape[0].extent;
      return check;
    }
    check.input = input_.at(value);
    const BoundTensor& tensor = inputs_[check.input];
    if (tensor.shape.empty()) return check;
    check.count = tensor.shape[0];
    check.stride = tensor.strides[0];
    return check;
  }

 private:
  const Function& function_;
  std::span<const BoundTensor> inputs_;
  std::unordered_map<ValueId, size_t> input_;
  std::unordered_map<ValueId, const Operation*> constant_;
};

}  // namespace

std::vector<ScaleCheck> scale_checks(const Function& function,
                                     std::span<const BoundTensor> inputs) {
  std::vector<ScaleCheck> checks;
  std::optional<ScaleTensors> tensors;  // most functions requantize nothing
  for (const Operation& operation : function.operations) {
    if (operation.op != OpKind::requantize) continue;
    if (!tensors) tensors.emplace(function, inputs);
    const ValueId source = operation.operands[source_parameter(0)];
    const ValueId destination = operation.operands[destination_parameter(0)];
    if (source != no_value) checks.push_back(tensors->check_of(source, "source"));
    if (destination != no_value) checks.push_back(tensors->check_of(destination, "destination"));
  }
  return checks;
}

Status check_scales(std::span<const ScaleCheck> checks, std::span<const ConstView> inputs) {
  const QuantizationRule& rule = quantization_rules[0];
  for (const ScaleCheck& check : checks) {
    const ConstView* view = check.constant == nullptr ? &inputs[check.input] : nullptr;
    const auto* data = view ? static_cast<const std::byte*>(view->data) : check.constant;
    const int64_t first = view ? view->offset : 0;
    for (int64_t i = 0; i < check.count; ++i) {
      const uint64_t bits = read_element(data, rule.element, first + i * check.stride);
      const auto scale = static_cast<int16_t>(bits);
      if (scale < rule.min) return scale_out_of_range(check.side, scale, i);
    }
  }
  return {};
}

}  // namespace castor::detail
