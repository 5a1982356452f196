// SPDX-License-Identifier: Apache-2.0
// Functions of the C API: from text, to text, and what they take and give.
#include <castor/c/function.h>
#include <fmt/format.h>

#include "ir/text/text.hpp"
#include "runtime/c/guard.hpp"
#include "runtime/c/handles.hpp"
#include "runtime/c/limits.hpp"
#include "runtime/c/structs.hpp"
#include "runtime/c/tensor.hpp"

namespace castor::c {

namespace {

/// Refuses another number of bytes than the type takes, before they are read. What is wrong with
/// the type itself, the verifier tells.
Status check_bytes(const castor_named_constant& constant, const TensorType& type) {
  Dims extents;
  for (const Dim& dim : type.shape) extents.push_back(dim.extent);
  const std::optional<int64_t> count = element_count(extents);
  const std::optional<int64_t> bytes = count ? byte_size(type.element, *count) : std::nullopt;
  if (!bytes || constant.bytes == static_cast<size_t>(*bytes)) return {};
  return Error{ErrorCode::invalid_function,
               fmt::format("constant @{}: found {} bytes, expected {} for {}", constant.name,
                           constant.bytes, *bytes, to_string(type))};
}

Result<std::vector<std::byte>> constant_named(std::span<const castor_named_constant> constants,
                                              std::string_view name, const TensorType& type) {
  std::string names;
  for (const castor_named_constant& constant : constants) {
    if (constant.name == name) {
      if (Status status = check_bytes(constant, type); !status) return status.error();
      const auto* begin = static_cast<const std::byte*>(constant.data);
      return std::vector(begin, begin + constant.bytes);
    }
    names += fmt::format("{}@{}", names.empty() ? "" : ", ", constant.name);
  }
  return invalid(fmt::format("found '@{}', expected a constant that was given: {}", name,
                             names.empty() ? "there is none" : names));
}

Status check_constants(std::span<const castor_named_constant> constants) {
  for (const castor_named_constant& constant : constants) {
    if (constant.name == nullptr) return invalid("a constant has no name (NULL)");
    if (constant.bytes > 0 && constant.data == nullptr) {
      return invalid(fmt::format("no data (NULL) for the {} bytes of constant @{}", constant.bytes,
                                 constant.name));
    }
  }
  return {};
}

Result<FunctionPtr> parsed(const char* text, size_t length, const char* name,
                           const castor_parse_options* options) {
  if (Status status = needed(text, length, "text"); !status) return status.error();
  castor_parse_options given;
  constexpr size_t first_version = offsetof(castor_parse_options, limits);
  Status status = read_struct(options, "castor_parse_options", given, first_version);
  if (!status) return status.error();
  status = needed(given.constants, given.constant_count, "constants");
  if (!status) return status.error();
  const std::span constants(given.constants, given.constant_count);
  if (status = check_constants(constants); !status) return status.error();
  ParseOptions parse;
  parse.bind_constant = [&](std::string_view wanted, const TensorType& type) {
    return constant_named(constants, wanted, type);
  };
  if (status = read_limits(given.limits, parse.limits); !status) return status.error();
  return parse_function(std::string_view(text, length), name == nullptr ? "" : name, parse);
}

const TypeInC* at(const std::vector<TypeInC>& types, size_t index) {
  return index < types.size() ? &types[index] : nullptr;
}
const TypeInC* input(const castor_function* function, size_t index) {
  return function == nullptr ? nullptr : at(function->inputs, index);
}
const TypeInC* output(const castor_function* function, size_t index) {
  return function == nullptr ? nullptr : at(function->outputs, index);
}
const char* name_in_c(const TypeInC* tensor) { return tensor == nullptr ? nullptr : tensor->name; }
const castor_tensor_type* type_in_c(const TypeInC* tensor) {
  return tensor == nullptr ? nullptr : &tensor->type;
}

}  // namespace

}  // namespace castor::c

castor_function::castor_function(castor::FunctionPtr shared) : function(std::move(shared)) {
  const castor::Function& from = *function;
  for (const castor::ValueId id : from.parameters) {
    inputs.push_back(castor::c::in_c(from.type_of(id), from.values[id].name));
  }
  for (size_t i = 0; i < from.results.size(); ++i) {
    outputs.push_back(castor::c::in_c(from.result_types[i], from.values[from.results[i]].name));
  }
  for (auto* const types : {&inputs, &outputs}) {
    for (castor::c::TypeInC& each : *types) each.settle();
  }
}

extern "C" {

castor_status castor_function_parse(const char* text, size_t length, const char* name,
                                    const castor_parse_options* options, castor_function** function,
                                    castor_error* error) noexcept {
  using namespace castor;
  return c::guarded_make(error, function, [&](std::unique_ptr<castor_function>& made) -> Status {
    Result<FunctionPtr> found = c::parsed(text, length, name, options);
    if (!found) return found.error();
    made = std::make_unique<castor_function>(std::move(found).value());
    return {};
  });
}

void castor_function_destroy(castor_function* function) noexcept { delete function; }

castor_status castor_function_print(const castor_function* function, castor_text** text,
                                    castor_error* error) noexcept {
  using namespace castor;
  return c::guarded_make(error, text, [&](std::unique_ptr<castor_text>& made) -> Status {
    if (Status status = c::needed(function, "function"); !status) return status;
    made = std::make_unique<castor_text>(castor_text{print(*function->function)});
    return {};
  });
}

const char* castor_function_name(const castor_function* function) noexcept {
  return function == nullptr ? nullptr : function->function->name.c_str();
}

size_t castor_function_input_count(const castor_function* function) noexcept {
  return function == nullptr ? 0 : function->inputs.size();
}

size_t castor_function_output_count(const castor_function* function) noexcept {
  return function == nullptr ? 0 : function->outputs.size();
}

const char* castor_function_input_name(const castor_function* function, size_t index) noexcept {
  return castor::c::name_in_c(castor::c::input(function, index));
}

const char* castor_function_output_name(const castor_function* function, size_t index) noexcept {
  return castor::c::name_in_c(castor::c::output(function, index));
}

const castor_tensor_type* castor_function_input_type(const castor_function* function,
                                                     size_t index) noexcept {
  return castor::c::type_in_c(castor::c::input(function, index));
}

const castor_tensor_type* castor_function_output_type(const castor_function* function,
                                                      size_t index) noexcept {
  return castor::c::type_in_c(castor::c::output(function, index));
}

}  // extern "C"
