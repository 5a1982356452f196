// SPDX-License-Identifier: Apache-2.0
#include "runtime/scale_checks.hpp"

#include <algorithm>

#include "ir/elements.hpp"
#include "ir/requantize.hpp"

namespace castor::detail {

namespace {

/// The operation whose result the value is, or null: a parameter.
const Operation* defining(const Function& function, ValueId value) {
  const auto found = std::ranges::find_if(function.operations, [&](const Operation& operation) {
    return std::ranges::find(operation.results, value) != operation.results.end();
  });
  return found == function.operations.end() ? nullptr : &*found;
}

ScaleCheck check_of(const Function& function, std::span<const BoundTensor> inputs, ValueId value,
                    std::string_view side) {
  ScaleCheck check{.side = side};
  if (const Operation* constant = defining(function, value)) {
    check.constant = constant->data->bytes.data();
    const Shape& shape = function.type_of(value).shape;
    if (!shape.empty()) check.count = shape[0].extent;
    return check;
  }
  const auto at = std::ranges::find(function.parameters, value);
  check.input = static_cast<size_t>(at - function.parameters.begin());
  const BoundTensor& tensor = inputs[check.input];
  if (tensor.shape.empty()) return check;
  check.count = tensor.shape[0];
  check.stride = tensor.strides[0];
  return check;
}

}  // namespace

std::vector<ScaleCheck> scale_checks(const Function& function,
                                     std::span<const BoundTensor> inputs) {
  std::vector<ScaleCheck> checks;
  for (const Operation& operation : function.operations) {
    if (operation.op != OpKind::requantize) continue;
    const ValueId source = operation.operands[source_parameter(0)];
    const ValueId destination = operation.operands[destination_parameter(0)];
    if (source != no_value) checks.push_back(check_of(function, inputs, source, "source"));
    if (destination != no_value) {
      checks.push_back(check_of(function, inputs, destination, "destination"));
    }
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
      if (scale < rule.least) return scale_out_of_range(check.side, scale, i);
    }
  }
  return {};
}

}  // namespace castor::detail
