// SPDX-License-Identifier: Apache-2.0
// The rules of tensor types and of names.
#include <fmt/format.h>

#include <algorithm>

#include "ir/verify/verify.hpp"

namespace castor {

namespace {

Error broken(std::string_view what, const std::string& detail) {
  return {ErrorCode::invalid_function, fmt::format("{}: {}", what, detail)};
}

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

Status check_dim(const Dim& dim, size_t axis, std::string_view what) {
  if (dim.extent < 0 && dim.is_fixed()) {
    return broken(what, fmt::format("axis {} has extent {}, expected 0 or more", axis, dim.extent));
  }
  if (dim.name.empty()) return {};
  if (dim.is_fixed()) {
    return broken(what, fmt::format("axis {} has extent {} and the name ?{}, expected one of them",
                                    axis, dim.extent, dim.name));
  }
  if (is_identifier(dim.name)) return {};
  return broken(what,
                fmt::format("axis {} has the name \"{}\", expected an identifier", axis, dim.name));
}

Status check_size(const TensorType& type, std::string_view what) {
  if (!is_fixed(type.shape)) return {};  // checked when bound
  Dims extents;
  for (const Dim& dim : type.shape) extents.push_back(dim.extent);
  const std::optional<int64_t> count = element_count(extents);
  if (!count) {
    return broken(what, fmt::format("{} has more than 2^63 - 1 elements", to_string(type)));
  }
  if (byte_size(type.element, *count)) return {};
  return broken(what, fmt::format("{} takes more than 2^63 - 1 bytes", to_string(type)));
}

/// One parameter of a quantized type: given for each slice, in its range.
Status check_parameter(const TensorType& type, const Quantization& quantization,
                       const QuantizationRule& rule, std::string_view what) {
  const QuantizationParameter& parameter = quantization.*rule.parameter;
  if (!parameter) return {};
  const std::string_view format = info(quantization.format).name;
  if (rule.asymmetric_only && !info(quantization.format).is_asymmetric) {
    return broken(what, fmt::format("found {} of {}, which has none", rule.name, format));
  }
  if (quantization.is_per_axis() && !type.shape[quantization.axis].is_fixed()) {
    return broken(what, fmt::format("{} of {} lists entries along axis {} of unknown extent, "
                                    "expected a fixed extent, or {} = ? to give them at run time",
                                    rule.name, format, quantization.axis, rule.name));
  }
  const int64_t slices = quantization.is_per_axis() ? type.shape[quantization.axis].extent : 1;
  if (static_cast<int64_t>(parameter->size()) != slices) {
    return broken(what, fmt::format("{} of {} has {} entries, expected {}: one for each {}",
                                    rule.name, format, parameter->size(), slices,
                                    quantization.is_per_axis() ? "index of the axis" : "tensor"));
  }
  for (int32_t entry : *parameter) {
    if (entry >= rule.min && entry <= rule.max) continue;
    return broken(what, fmt::format("{} of {} is {}, expected {} to {}", rule.name, format, entry,
                                    rule.min, rule.max));
  }
  return {};
}

Status check_quantization(const TensorType& type, const Quantization& quantization,
                          std::string_view what) {
  if (!is_quantized_format(quantization.format)) {
    return broken(what,
                  fmt::format("quantized format {} is not in the table of formats, expected "
                              "0 to {}",
                              static_cast<int>(quantization.format), quantized_table.size() - 1));
  }
  const QuantizedInfo& format = info(quantization.format);
  if (type.element != format.container) {
    return broken(what, fmt::format("{} is held in {}, expected {}", format.name,
                                    name_of(type.element), name_of(format.container)));
  }
  if (quantization.is_per_axis()) {
    if (!format.is_asymmetric) {
      return broken(what, fmt::format("found axis = {} of {}, which has one scale a tensor",
                                      quantization.axis, format.name));
    }
    const auto rank = static_cast<int>(type.shape.size());
    if (rank == 0) {
      return broken(what, fmt::format("axis = {} of {}, expected none: a scalar has no axes",
                                      quantization.axis, format.name));
    }
    if (quantization.axis < 0 || quantization.axis >= rank) {
      return broken(what, fmt::format("axis = {} of {}, expected 0 to {}: one of the {} axes",
                                      quantization.axis, format.name, rank - 1, rank));
    }
  }
  for (const QuantizationRule& rule : quantization_rules) {
    Status status = check_parameter(type, quantization, rule, what);
    if (!status) return status;
  }
  return {};
}

}  // namespace

bool is_identifier(std::string_view name) {
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return is_letter(c) || is_digit(c) || c == '.' || c == '$' || c == '-';
         });
}

bool is_value_name(std::string_view name) {
  return is_identifier(name) || (!name.empty() && std::all_of(name.begin(), name.end(), is_digit));
}

Status verify_type(const TensorType& type, std::string_view what) {
  if (!is_element_type(type.element)) {
    return broken(what, fmt::format("element type {} is not in the table of element types, "
                                    "expected 0 to {}",
                                    static_cast<int>(type.element), element_table.size() - 1));
  }
  if (type.shape.size() > max_rank) {
    return broken(what,
                  fmt::format("found rank {}, expected at most {}", type.shape.size(), max_rank));
  }
  for (size_t axis = 0; axis < type.shape.size(); ++axis) {
    if (Status status = check_dim(type.shape[axis], axis, what); !status) return status;
  }
  if (type.quantization) {
    if (Status status = check_quantization(type, *type.quantization, what); !status) return status;
  }
  return check_size(type, what);
}

Status verify_declared_type(const TensorType& declared, const TensorType& actual,
                            std::string_view what) {
  if (Status status = verify_type(declared, what); !status) return status;
  const auto differs = [&](const std::string& detail) {
    return broken(what, fmt::format("declared {}, but its type is {}: {}", to_string(declared),
                                    to_string(actual), detail));
  };
  if (declared.element != actual.element) return differs("element types must be equal");
  if (!same_quantization(declared.quantization, actual.quantization)) {
    return differs("quantizations must be equal");
  }
  if (declared.shape.size() != actual.shape.size()) return differs("ranks must be equal");
  for (size_t axis = 0; axis < declared.shape.size(); ++axis) {
    const Dim& a = declared.shape[axis];
    const Dim& b = actual.shape[axis];
    if (!a.is_fixed() || !b.is_fixed() || a.extent == b.extent) continue;
    return differs(fmt::format("axis {} is {} against {}, fixed extents must be equal", axis,
                               a.extent, b.extent));
  }
  return {};
}

}  // namespace castor
