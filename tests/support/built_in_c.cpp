// SPDX-License-Identifier: Apache-2.0
#include "tests/support/built_in_c.hpp"

#include <castor/castor.h>

#include <deque>
#include <stdexcept>
#include <vector>

namespace castor::test {

namespace {

/// Translates one function; keeps what the C structures point to.
class Translation {
 public:
  explicit Translation(const Function& function) : function_(function) {}

  std::string text() {
    castor_error error;
    if (castor_builder_create(function_.name.c_str(), &builder_, &error) != CASTOR_OK) {
      return error.message;
    }
    for (const ValueId id : function_.parameters) {
      const castor_tensor_type type = in_c(function_.type_of(id));
      numbers_[id] = castor_builder_input(builder_, function_.values[id].name.c_str(), &type);
    }
    for (const Operation& operation : function_.operations) add(operation);
    for (size_t i = 0; i < function_.results.size(); ++i) {
      const castor_tensor_type type = in_c(function_.result_types[i]);
      castor_builder_output(builder_, numbers_[function_.results[i]], &type);
    }
    for (const Attribute& attribute : function_.attributes) {
      const castor_attribute given = in_c(attribute);
      castor_builder_attribute(builder_, &given);
    }
    return finished();
  }

 private:
  std::string finished() {
    castor_error error;
    castor_function* built = nullptr;
    castor_text* text = nullptr;
    std::string result;
    if (castor_builder_finish(builder_, &built, &error) != CASTOR_OK ||
        castor_function_print(built, &text, &error) != CASTOR_OK) {
      result = error.message;
    } else {
      result.assign(castor_text_data(text), castor_text_length(text));
    }
    castor_text_destroy(text);
    castor_function_destroy(built);
    castor_builder_destroy(builder_);
    return result;
  }

  void add(const Operation& operation) {
    std::vector<castor_value> operands;
    for (const ValueId id : operation.operands) {
      operands.push_back(id == no_value ? CASTOR_NO_VALUE : numbers_[id]);
    }
    std::vector<castor_attribute> attributes;
    for (const Attribute& attribute : operation.attributes) attributes.push_back(in_c(attribute));
    std::vector<const char*> names;
    for (const ValueId id : operation.results) names.push_back(function_.values[id].name.c_str());
    const OpInfo& row = info(operation.op);
    const std::string op(row.name);
    castor_tensor_type type = in_c(function_.type_of(operation.results[0]));
    if (row.suffix == TypeSuffix::element) type.rank = CASTOR_NO_RANK;
    if (row.suffix == TypeSuffix::shape) {
      type = in_c({ElementType::f32, *operation.target});
      type.element = CASTOR_NO_ELEMENT;
    }
    castor_operation given = {};
    given.struct_size = sizeof given;
    given.op = op.c_str();
    given.operands = operands.data();
    given.operand_count = operands.size();
    given.attributes = attributes.data();
    given.attribute_count = attributes.size();
    given.type = row.suffix == TypeSuffix::optional_type ? nullptr : &type;
    if (operation.data) {
      given.data = operation.data->bytes.data();
      given.bytes = operation.data->bytes.size();
      if (!operation.data->binding.empty()) given.binding = operation.data->binding.c_str();
    }
    given.names = names.data();
    castor_value next = castor_builder_op(builder_, &given);
    for (const ValueId id : operation.results) numbers_[id] = next++;
  }

  castor_slices in_c(const QuantizationParameter& parameter) {
    if (!parameter) return {};
    static constexpr int32_t none = 0;  // an empty list is not NULL
    return {parameter->empty() ? &none : parameter->data(), parameter->size()};
  }

  castor_tensor_type in_c(const TensorType& type) {
    std::vector<castor_dim>& dims = dims_.emplace_back();
    for (const Dim& dim : type.shape)
      dims.push_back({dim.extent, names_.emplace_back(dim.name).c_str()});
    castor_tensor_type result = {castor_element_named(name_of(type.element).data()),
                                 static_cast<int32_t>(dims.size()), dims.data(), nullptr};
    if (type.quantization) {
      const Quantization& from = *type.quantization;
      result.quantization = &quantizations_.emplace_back(
          castor_quantization{static_cast<int32_t>(from.format) + 1, from.axis, in_c(from.scale),
                              in_c(from.frac), in_c(from.zero_point)});
    }
    return result;
  }

  castor_attribute in_c(const Attribute& attribute) {
    const char* name = attribute.name.c_str();
    const auto& value = attribute.value.value;
    if (const auto* x = std::get_if<int64_t>(&value)) return castor_integer_attribute(name, *x);
    if (const auto* x = std::get_if<double>(&value)) return castor_float_attribute(name, *x);
    if (const auto* x = std::get_if<bool>(&value)) return castor_boolean_attribute(name, *x);
    if (const auto* x = std::get_if<Identifier>(&value)) {
      return castor_identifier_attribute(name, x->name.c_str());
    }
    if (const auto* x = std::get_if<AttributeValue::List>(&value)) {
      std::vector<int64_t>& integers = integers_.emplace_back();
      for (const AttributeValue& entry : *x) integers.push_back(std::get<int64_t>(entry.value));
      return castor_integers_attribute(name, integers.data(), integers.size());
    }
    throw std::logic_error("no op takes a string");
  }

  const Function& function_;
  castor_builder* builder_ = nullptr;
  std::vector<castor_value> numbers_ = std::vector<castor_value>(function_.values.size());
  std::deque<std::vector<castor_dim>> dims_;
  std::deque<std::string> names_;
  std::deque<castor_quantization> quantizations_;
  std::deque<std::vector<int64_t>> integers_;
};

}  // namespace

std::string text_built_in_c(const Function& function) { return Translation(function).text(); }

}  // namespace castor::test
