// SPDX-License-Identifier: Apache-2.0
#include "ir/verify/requantize.hpp"

#include <fmt/format.h>

namespace castor {

namespace {

Error mistake(const std::string& detail) {
  return {ErrorCode::invalid_function, fmt::format("requantize: {}", detail)};
}

bool is_identifier(const Attributes& attributes, std::string_view name, std::string_view value) {
  const AttributeValue* found = find(attributes, name);
  const auto* identifier = found ? std::get_if<Identifier>(&found->value) : nullptr;
  return identifier && identifier->name == value;
}

/// One side's type: quantized, or f32.
Status check_side(std::string_view side, const TensorType& type) {
  if (type.quantization || type.element == ElementType::f32) return {};
  return mistake(fmt::format("the {} is {}, expected {}", side, element_text(type),
                             name_of(OperandClass::quantized)));
}

/// A parameter is an operand exactly where the type leaves it to run time.
Status check_parameter(std::string_view side, const TensorType& type, const QuantizationRule& rule,
                       const TensorType* operand) {
  const Quantization* quantization = type.quantization.get();
  const bool has_it =
      quantization && (info(quantization->format).is_asymmetric || !rule.asymmetric_only);
  const bool is_open = has_it && !(quantization->*rule.parameter);
  if (!is_open) {
    if (!operand) return {};
    return mistake(fmt::format("found an operand for {} of the {}, expected none: its type is {}",
                               rule.name, side, element_text(type)));
  }
  if (!operand) {
    return mistake(fmt::format("{} of the {} is ? in {}, expected an operand for it", rule.name,
                               side, element_text(type)));
  }
  if (operand->element != rule.element || operand->quantization) {
    return mistake(fmt::format("{} of the {} is {}, expected {}", rule.name, side,
                               to_string(*operand), name_of(rule.element)));
  }
  const bool is_scalar = !quantization->is_per_axis() && operand->shape.empty();
  if (is_scalar || operand->shape.size() == 1) return {};
  return mistake(fmt::format(
      "{} of the {} is {}, expected {}", rule.name, side, to_string(*operand),
      quantization->is_per_axis() ? "one axis: an entry for each index of the quantization's"
                                  : "a scalar"));
}

/// Extent of a parameter against the slices that it is for.
Status check_extent(std::string_view side, const Quantization& quantization,
                    const QuantizationRule& rule, int64_t found, int64_t expected) {
  if (found == expected) return {};
  return mistake(fmt::format("{} of the {} has {} entries, expected {}", rule.name, side, found,
                             quantization.is_per_axis() ? fmt::format("{}: the extent of axis {}",
                                                                      expected, quantization.axis)
                                                        : "1"));
}

Status check_axes(const TensorType& from, const TensorType& to) {
  if (!from.quantization || !to.quantization) return {};
  const Quantization& a = *from.quantization;
  const Quantization& b = *to.quantization;
  if (!a.is_per_axis() || !b.is_per_axis() || a.axis == b.axis) return {};
  return mistake(
      fmt::format("the source is quantized along axis {}, the destination along axis "
                  "{}, expected the same: the axis of quantization cannot be changed",
                  a.axis, b.axis));
}

/// Calls `check(side, type, rule, operand index)` for each parameter of both sides, until one
/// fails.
template <class Check>
Status for_each_parameter(const TensorType& from, const TensorType& to, const Check& check) {
  for (size_t r = 0; r < quantization_rules.size(); ++r) {
    const QuantizationRule& rule = quantization_rules[r];
    if (Status status = check("source", from, rule, source_parameter(r)); !status) return status;
    Status status = check("destination", to, rule, destination_parameter(r));
    if (!status) return status;
  }
  return {};
}

}  // namespace

RequantizeOptions requantize_options(const Operation& operation) {
  RequantizeOptions options;
  if (is_identifier(operation.attributes, "arithmetic", "embarc")) {
    options.arithmetic = RequantizeArithmetic::embarc;
  }
  if (is_identifier(operation.attributes, "rounding", "nearest_even")) {
    options.rounding = RequantizeRounding::nearest_even;
  }
  return options;
}

Attributes attributes_of(const RequantizeOptions& options) {
  Attributes attributes;
  if (options.arithmetic == RequantizeArithmetic::embarc) {
    attributes.push_back({"arithmetic", {Identifier{"embarc"}}});
  }
  if (options.rounding == RequantizeRounding::nearest_even) {
    attributes.push_back({"rounding", {Identifier{"nearest_even"}}});
  }
  return attributes;
}

Result<TensorType> requantize_type(std::span<const TensorType* const> operands,
                                   const WrittenType& written) {
  if (!written.element) {
    return mistake("the destination's format must be written, such as `: fx8<frac = 7>`");
  }
  const TensorType& from = *operands[0];
  TensorType to{*written.element, from.shape, written.quantization};
  if (Status status = check_side("source", from); !status) return status.error();
  if (Status status = check_side("destination", to); !status) return status.error();
  if (Status status = check_axes(from, to); !status) return status.error();
  const auto check = [&](std::string_view side, const TensorType& type,
                         const QuantizationRule& rule, size_t operand) {
    return check_parameter(side, type, rule, operands[operand]);
  };
  if (Status status = for_each_parameter(from, to, check); !status) return status.error();
  const auto check_fixed = [&](std::string_view side, const TensorType& type,
                               const QuantizationRule& rule, size_t operand) -> Status {
    const TensorType* parameter = operands[operand];
    if (!parameter || parameter->shape.empty() || !parameter->shape[0].is_fixed()) return {};
    const Quantization& quantization = *type.quantization;
    // An axis that the type does not have is the verifier's affair, once the result is defined.
    const bool has_axis =
        quantization.axis >= 0 && quantization.axis < static_cast<int>(from.shape.size());
    if (quantization.is_per_axis() && (!has_axis || !from.shape[quantization.axis].is_fixed())) {
      return {};
    }
    const int64_t slices = quantization.is_per_axis() ? from.shape[quantization.axis].extent : 1;
    return check_extent(side, quantization, rule, parameter->shape[0].extent, slices);
  };
  if (Status status = for_each_parameter(from, to, check_fixed); !status) return status.error();
  return to;
}

Error scale_out_of_range(std::string_view side, int32_t found, int64_t entry) {
  return {ErrorCode::invalid_argument,
          fmt::format("requantize: scale of the {} is {} in entry {}, expected {} to {}", side,
                      found, entry, quantization_rules[0].min, quantization_rules[0].max)};
}

Status check_scales(std::string_view side, std::span<const int32_t> scales) {
  const QuantizationRule& rule = quantization_rules[0];
  for (size_t i = 0; i < scales.size(); ++i) {
    if (scales[i] >= rule.min && scales[i] <= rule.max) continue;
    return scale_out_of_range(side, scales[i], static_cast<int64_t>(i));
  }
  return {};
}

Status check_parameter_extents(const TensorType& from, const TensorType& to,
                               std::span<const Dims* const> extents) {
  const auto check = [&](std::string_view side, const TensorType& type,
                         const QuantizationRule& rule, size_t operand) -> Status {
    if (!extents[operand] || extents[operand]->empty()) return {};
    const Quantization& quantization = *type.quantization;
    const int64_t slices = quantization.is_per_axis() ? (*extents[0])[quantization.axis] : 1;
    return check_extent(side, quantization, rule, (*extents[operand])[0], slices);
  };
  return for_each_parameter(from, to, check);
}

}  // namespace castor
