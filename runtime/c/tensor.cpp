// SPDX-License-Identifier: Apache-2.0
#include "runtime/c/tensor.hpp"

#include <fmt/format.h>

#include "runtime/c/guard.hpp"
#include "runtime/c/structs.hpp"

namespace castor::c {

namespace {

Error no_element(castor_element_type type, std::string_view what) {
  return invalid(
      fmt::format("{}: element type {}, expected 1 to {}", what, type, element_type_count));
}

Error bad_rank(int32_t rank, std::string_view what) {
  return invalid(fmt::format("{}: rank {}, expected 0 to {}", what, rank, max_rank));
}

Result<Shape> shape_of(const castor_tensor_type& type, std::string_view what) {
  if (type.rank < 0 || type.rank > max_rank) return bad_rank(type.rank, what);
  if (type.rank > 0 && type.dims == nullptr) {
    return invalid(fmt::format("{}: no dims (NULL) for rank {}", what, type.rank));
  }
  Shape shape;
  for (int32_t axis = 0; axis < type.rank; ++axis) {
    const castor_dim& dim = type.dims[axis];
    if (dim.extent < 0 && dim.extent != CASTOR_UNKNOWN) {
      return invalid(fmt::format("{}: extent {} of axis {}, expected 0 or more, or CASTOR_UNKNOWN",
                                 what, dim.extent, axis));
    }
    const bool is_named = dim.name != nullptr && dim.name[0] != '\0';
    if (is_named && dim.extent != CASTOR_UNKNOWN) {
      return invalid(fmt::format("{}: extent {} of axis {} is named \"{}\"; only unknown ones are",
                                 what, dim.extent, axis, dim.name));
    }
    shape.push_back(is_named ? Dim::named(dim.name) : Dim(dim.extent));
  }
  return shape;
}

Result<QuantizationParameter> parameter_of(const castor_slices& slices, std::string_view what,
                                           std::string_view name) {
  if (slices.values != nullptr) {
    return QuantizationParameter(std::vector(slices.values, slices.values + slices.count));
  }
  if (slices.count == 0) return QuantizationParameter();
  return invalid(
      fmt::format("{}: {} of {} slices without values (NULL)", what, name, slices.count));
}

Result<QuantizationPtr> quantization_of(const castor_tensor_type& type, std::string_view what) {
  if (type.quantization == nullptr) return QuantizationPtr();
  const castor_quantization& given = *type.quantization;
  if (given.format < 1 || given.format > static_cast<int32_t>(quantized_table.size())) {
    return invalid(fmt::format("{}: quantized format {}, expected 1 to {}", what, given.format,
                               quantized_table.size()));
  }
  if (type.element == CASTOR_NO_ELEMENT) {
    return invalid(fmt::format("{}: a quantized type without its element type", what));
  }
  Quantization quantization;
  quantization.format = static_cast<QuantizedFormat>(given.format - 1);
  quantization.axis = given.axis;
  const castor_slices* const all[] = {&given.scale, &given.frac, &given.zero_point};
  for (size_t r = 0; r < quantization_rules.size(); ++r) {
    const QuantizationRule& rule = quantization_rules[r];
    Result<QuantizationParameter> parameter = parameter_of(*all[r], what, rule.name);
    if (!parameter) return parameter.error();
    quantization.*rule.parameter = std::move(parameter).value();
  }
  return QuantizationPtr(std::make_shared<const Quantization>(std::move(quantization)));
}

template <class Option>
Status read_option(int32_t given, size_t count, const char* name, Option& option) {
  if (given < 0 || static_cast<size_t>(given) >= count) {
    return invalid(fmt::format("{} {}, expected 0 to {}", name, given, count - 1));
  }
  option = static_cast<Option>(given);
  return {};
}

castor_slices in_c(const QuantizationParameter& parameter) {
  return parameter ? castor_slices{parameter->data(), parameter->size()} : castor_slices{};
}

castor_quantization in_c(const Quantization& quantization) {
  return {static_cast<int32_t>(quantization.format) + 1, quantization.axis,
          in_c(quantization.scale), in_c(quantization.frac), in_c(quantization.zero_point)};
}

}  // namespace

Result<ElementType> element_of(castor_element_type type, std::string_view what) {
  const std::optional<ElementType> element = element_numbered(type);
  if (!element) return no_element(type, what);
  return *element;
}

Result<TensorType> type_of(const castor_tensor_type& type, std::string_view what) {
  Result<ElementType> element = element_of(type.element, what);
  if (!element) return element.error();
  Result<Shape> shape = shape_of(type, what);
  if (!shape) return shape.error();
  Result<QuantizationPtr> quantization = quantization_of(type, what);
  if (!quantization) return quantization.error();
  return TensorType{*element, std::move(shape).value(), std::move(quantization).value()};
}

Result<WrittenType> written_type_of(const castor_tensor_type& type, std::string_view what) {
  WrittenType written;
  if (type.element != CASTOR_NO_ELEMENT) {
    Result<ElementType> element = element_of(type.element, what);
    if (!element) return element.error();
    written.element = *element;
  }
  if (type.rank != CASTOR_NO_RANK) {
    Result<Shape> shape = shape_of(type, what);
    if (!shape) return shape.error();
    written.shape = std::move(shape).value();
  }
  Result<QuantizationPtr> quantization = quantization_of(type, what);
  if (!quantization) return quantization.error();
  written.quantization = std::move(quantization).value();
  return written;
}

Result<Dims> dims_of(const castor_extents& extents, std::string_view what) {
  if (extents.rank < 0 || extents.rank > max_rank) return bad_rank(extents.rank, what);
  if (extents.rank > 0 && extents.values == nullptr) {
    return invalid(fmt::format("{}: no values (NULL) for rank {}", what, extents.rank));
  }
  return Dims(std::span(extents.values, static_cast<size_t>(extents.rank)));
}

Result<ConvertOptions> convert_options_of(const castor_convert_options* options) {
  castor_convert_options given;
  Status status = read_struct(options, "castor_convert_options", given);
  if (!status) return status.error();
  ConvertOptions result;
  status = read_option(given.overflow, overflow_names.size(), "overflow", result.overflow);
  if (!status) return status.error();
  status = read_option(given.rounding, rounding_names.size(), "rounding", result.rounding);
  if (!status) return status.error();
  status = read_option(given.nan, nan_mode_names.size(), "nan", result.nan);
  if (!status) return status.error();
  status = check_reserved(given.reserved, "castor_convert_options");
  if (!status) return status.error();
  return result;
}

template <class Pointer>
Status read_view(const castor_view& view, const ViewName& called, BasicView<Pointer>& to) {
  const auto name = [&] {
    return called.index == ViewName::alone ? std::string(called.what)
                                           : fmt::format("{} {}", called.what, called.index);
  };
  const std::optional<ElementType> element = element_numbered(view.element);
  if (!element) return no_element(view.element, name());
  if (view.rank < 0 || view.rank > max_rank) return bad_rank(view.rank, name());
  if (view.rank > 0 && view.shape == nullptr) {
    return invalid(fmt::format("{}: no shape (NULL) for rank {}", name(), view.rank));
  }
  const auto rank = static_cast<size_t>(view.rank);
  to.data = view.data;
  to.element = *element;
  to.shape = Dims(std::span(view.shape, rank));
  for (const int64_t extent : to.shape) {
    if (extent >= 0) continue;
    return invalid(
        fmt::format("{}: shape {}, expected extents of 0 or more", name(), to_string(to.shape)));
  }
  to.strides =
      view.strides != nullptr ? Dims(std::span(view.strides, rank)) : dense_strides(to.shape);
  to.offset = view.offset;
  to.bytes = view.bytes;
  return {};
}

template Status read_view(const castor_view&, const ViewName&, ConstView&);
template Status read_view(const castor_view&, const ViewName&, View&);

TypeInC in_c(const TensorType& type, const std::string& name) {
  TypeInC result;
  for (const Dim& dim : type.shape) {
    result.dims.push_back({dim.extent, dim.name.empty() ? nullptr : dim.name.c_str()});
  }
  if (type.quantization) result.quantization = in_c(*type.quantization);
  result.type.element = to_c(type.element);
  result.type.rank = static_cast<int32_t>(type.shape.size());
  result.name = name.c_str();
  return result;
}

}  // namespace castor::c

extern "C" {

const char* castor_element_name(castor_element_type type) noexcept {
  const auto element = castor::c::element_numbered(type);
  return element ? castor::name_of(*element).data() : nullptr;
}

castor_element_type castor_element_named(const char* name) noexcept {
  if (name == nullptr) return CASTOR_NO_ELEMENT;
  const auto type = castor::element_type_named(name);
  return type ? castor::c::to_c(*type) : CASTOR_NO_ELEMENT;
}

int32_t castor_element_bits(castor_element_type type) noexcept {
  const auto element = castor::c::element_numbered(type);
  return element ? castor::bits_of(*element) : 0;
}

}  // extern "C"
