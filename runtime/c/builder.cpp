// SPDX-License-Identifier: Apache-2.0
// Building functions op by op through the C API.
#include <castor/c/function.h>
#include <fmt/format.h>

#include <stdexcept>

#include "ir/verify/verify.hpp"
#include "runtime/c/guard.hpp"
#include "runtime/c/handles.hpp"
#include "runtime/c/structs.hpp"
#include "runtime/c/tensor.hpp"

namespace castor::c {

namespace {

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

/// Runs one step of building, which throws or gives a Status of its own, unless there has been a
/// mistake. The first mistake is kept, whether the step's or the builder's.
template <class Step>
void step(castor_builder* builder, const Step& body) noexcept {
  if (builder == nullptr || builder->no_memory || !builder->mistake.ok()) return;
  try {
    if (builder->spent) {
      builder->mistake = invalid("the builder has finished its function");
    } else if (builder->builder.error() == nullptr) {
      Status status = body(builder->builder);
      if (!status.ok()) builder->mistake = std::move(status);
    }
  } catch (const std::bad_alloc&) {
    builder->no_memory = true;
  } catch (const std::length_error&) {  // sizes that no memory has
    builder->no_memory = true;
  } catch (...) {  // nothing else is thrown; a message might find no memory
    builder->mistake = Error{ErrorCode::internal, {}};
  }
}

/// Calls a step that gives a value, and keeps its error.
template <class Step>
castor_value step_to_value(castor_builder* builder, const Step& body) noexcept {
  castor_value value = CASTOR_NO_VALUE;
  step(builder, [&](FunctionBuilder& to) { return body(to, value); });
  return value;
}

/// No list of integers has more entries: there are two for each axis.
constexpr size_t max_list_entries = 2 * max_rank;

Result<AttributeValue> value_of(const castor_attribute& attribute) {
  switch (attribute.kind) {
    case CASTOR_ATTRIBUTE_INTEGER: return AttributeValue{attribute.integer};
    case CASTOR_ATTRIBUTE_FLOAT: return AttributeValue{attribute.number};
    case CASTOR_ATTRIBUTE_BOOLEAN: return AttributeValue{attribute.integer != 0};
    case CASTOR_ATTRIBUTE_IDENTIFIER:
    case CASTOR_ATTRIBUTE_STRING: {
      if (attribute.text == nullptr) {
        return invalid(fmt::format("attribute {}: no text (NULL)", attribute.name));
      }
      if (attribute.kind == CASTOR_ATTRIBUTE_STRING)
        return AttributeValue{std::string(attribute.text)};
      return AttributeValue{Identifier{attribute.text}};
    }
    case CASTOR_ATTRIBUTE_INTEGERS: {
      Status status = needed(attribute.integers, attribute.count, "integers");
      if (!status) return status.error();
      if (attribute.count > max_list_entries) {
        return invalid(fmt::format("attribute {}: {} integers, expected at most {}", attribute.name,
                                   attribute.count, max_list_entries));
      }
      AttributeValue::List list;
      for (const int64_t entry : std::span(attribute.integers, attribute.count)) {
        list.push_back({entry});
      }
      return AttributeValue{std::move(list)};
    }
    default:
      return invalid(fmt::format("attribute {}: kind {}, expected 1 to {}", attribute.name,
                                 attribute.kind, CASTOR_ATTRIBUTE_INTEGERS));
  }
}

Result<Attribute> attribute_of(const castor_attribute& attribute) {
  if (attribute.name == nullptr) return invalid("an attribute has no name (NULL)");
  Result<AttributeValue> value = value_of(attribute);
  if (!value) return value.error();
  return Attribute{attribute.name, std::move(value).value()};
}

Result<OpKind> op_of(const char* name) {
  if (Status status = needed(name, "op's name"); !status) return status.error();
  if (const std::optional<OpKind> op = op_named(name)) return *op;
  return Error{ErrorCode::invalid_function,
               fmt::format("found op \"{}\", which there is not", name)};
}

/// Refuses another number of bytes than the type takes, before they are read.
Status check_bytes(const castor_operation& given, const WrittenType& written) {
  if (!written.element || !written.shape || !is_fixed(*written.shape)) return {};
  const TensorType type = {*written.element, *written.shape, written.quantization};
  if (Status status = verify_type(type, given.op); !status) return status;
  Dims extents;
  for (const Dim& dim : type.shape) extents.push_back(dim.extent);
  const int64_t bytes = *byte_size(type.element, *element_count(extents));
  if (given.bytes == static_cast<size_t>(bytes)) return {};
  return Error{ErrorCode::invalid_function,
               fmt::format("{}: found {} bytes, expected {} for {}", given.op, given.bytes, bytes,
                           to_string(type))};
}

Status read_data(const castor_operation& given, const WrittenType& written, Operation& operation) {
  const bool is_constant = operation.op == OpKind::constant;
  const bool has_data = given.data != nullptr || given.bytes != 0 || given.binding != nullptr;
  if (!is_constant) {
    if (!has_data) return {};
    return invalid(fmt::format("{}: data, which only a constant has", given.op));
  }
  if (Status status = needed(given.data, given.bytes, "data of a constant"); !status) return status;
  if (Status status = check_bytes(given, written); !status) return status;
  const std::string binding = text_or_empty(given.binding);
  if (given.binding != nullptr && !is_identifier(binding)) {
    return invalid(
        fmt::format("\"{}\" cannot name a constant; expected letters, digits, _ . $ -, "
                    "beginning with a letter or _",
                    binding));
  }
  const auto* begin = static_cast<const std::byte*>(given.data);
  operation.data = std::make_shared<const ConstantData>(
      ConstantData{binding, std::vector(begin, begin + given.bytes)});
  return {};
}

/// Refuses more operands or attributes than the op has, before they are read.
Status check_counts(const castor_operation& given, const OpInfo& row) {
  const auto operands = static_cast<size_t>(row.operands);
  if (given.operand_count > operands) {
    return Error{ErrorCode::invalid_function,
                 fmt::format("{}: found {} operands, expected {}{}", row.name, given.operand_count,
                             row.optional_operands > 0 ? "at most " : "", operands)};
  }
  if (given.attribute_count > row.attributes.size()) {
    return Error{ErrorCode::invalid_function,
                 fmt::format("{}: found {} attributes, expected at most {}", row.name,
                             given.attribute_count, row.attributes.size())};
  }
  return {};
}

/// The operation without its type, data and names.
Result<Operation> operation_of(const castor_operation& given) {
  const Result<OpKind> op = op_of(given.op);
  if (!op) return op.error();
  Operation operation;
  operation.op = *op;
  Status status = needed(given.operands, given.operand_count, "operands");
  if (!status) return status.error();
  status = needed(given.attributes, given.attribute_count, "attributes");
  if (!status) return status.error();
  if (status = check_counts(given, info(*op)); !status) return status.error();
  operation.operands.assign(given.operands, given.operands + given.operand_count);
  for (const castor_attribute& each : std::span(given.attributes, given.attribute_count)) {
    Result<Attribute> attribute = attribute_of(each);
    if (!attribute) return attribute.error();
    operation.attributes.push_back(std::move(attribute).value());
  }
  return operation;
}

std::vector<std::string> names_of(OpKind op, const char* const* names) {
  std::vector<std::string> result;
  if (names == nullptr) return result;
  for (int i = 0; i < info(op).results; ++i) result.push_back(text_or_empty(names[i]));
  return result;
}

Status append(FunctionBuilder& builder, const castor_operation& given, castor_value& value) {
  Result<Operation> operation = operation_of(given);
  if (!operation) return operation.error();
  WrittenType written;
  if (given.type != nullptr) {
    Result<WrittenType> type = written_type_of(*given.type, given.op);
    if (!type) return type.error();
    written = std::move(type).value();
  }
  if (Status status = read_data(given, written, *operation); !status) return status;
  const std::vector<std::string> names = names_of(operation->op, given.names);
  value = builder.append(std::move(operation).value(), written, names);
  return {};
}

castor_value append_new(castor_builder* builder, const castor_operation& operation) noexcept {
  return step_to_value(builder, [&](FunctionBuilder& to, castor_value& value) {
    return append(to, operation, value);
  });
}

/// An operation of these operands, with one result.
castor_operation operation_with(const char* op, std::span<const castor_value> operands,
                                const char* const& name) {
  castor_operation operation = {};
  operation.struct_size = sizeof operation;
  operation.op = op;
  operation.operands = operands.data();
  operation.operand_count = operands.size();
  operation.names = &name;
  return operation;
}

Status convert(FunctionBuilder& builder, castor_value x, castor_element_type to,
               const castor_convert_options* options, const char* name, castor_value& value) {
  const Result<ElementType> element = element_of(to, "convert");
  if (!element) return element.error();
  const Result<ConvertOptions> how = convert_options_of(options);
  if (!how) return how.error();
  const std::string names[] = {text_or_empty(name)};
  value =
      builder.append({.op = OpKind::convert, .operands = {x}, .attributes = attributes_of(*how)},
                     {.element = *element, .shape = {}}, names);
  return {};
}

Result<FunctionPtr> finish(castor_builder& builder) {
  if (builder.no_memory) throw std::bad_alloc();
  if (!builder.mistake.ok()) return builder.mistake.error();
  if (builder.spent) return invalid("the builder has finished its function");
  return builder.builder.finish();
}

}  // namespace

}  // namespace castor::c

extern "C" {

castor_status castor_builder_create(const char* name, castor_builder** builder,
                                    castor_error* error) noexcept {
  using namespace castor;
  return c::guarded_make(error, builder, [&](std::unique_ptr<castor_builder>& made) -> Status {
    if (Status status = c::needed(name, "name of the function"); !status) return status;
    made.reset(new castor_builder{FunctionBuilder(name)});
    return {};
  });
}

void castor_builder_destroy(castor_builder* builder) noexcept { delete builder; }

castor_value castor_builder_input(castor_builder* builder, const char* name,
                                  const castor_tensor_type* type) noexcept {
  using namespace castor;
  return c::step_to_value(builder, [&](FunctionBuilder& to, castor_value& value) -> Status {
    if (Status status = c::needed(type, "type of an input"); !status) return status;
    const std::string given = c::text_or_empty(name);
    Result<TensorType> tensor = c::type_of(*type, "input %" + given);
    if (!tensor) return tensor.error();
    value = to.parameter(given, std::move(tensor).value());
    return {};
  });
}

castor_value castor_builder_op(castor_builder* builder,
                               const castor_operation* operation) noexcept {
  using namespace castor;
  return c::step_to_value(builder, [&](FunctionBuilder& to, castor_value& value) -> Status {
    if (Status status = c::needed(operation, "operation"); !status) return status;
    castor_operation given;
    Status status = c::read_struct(operation, "castor_operation", given);
    return status.ok() ? c::append(to, given, value) : std::move(status);
  });
}

castor_value castor_builder_unary(castor_builder* builder, const char* op, castor_value x,
                                  const char* name) noexcept {
  const castor_value operands[] = {x};
  return castor::c::append_new(builder, castor::c::operation_with(op, operands, name));
}

castor_value castor_builder_binary(castor_builder* builder, const char* op, castor_value x,
                                   castor_value y, const char* name) noexcept {
  const castor_value operands[] = {x, y};
  return castor::c::append_new(builder, castor::c::operation_with(op, operands, name));
}

castor_value castor_builder_constant(castor_builder* builder, const castor_tensor_type* type,
                                     const void* data, size_t bytes, const char* name) noexcept {
  castor_operation operation = castor::c::operation_with("constant", {}, name);
  operation.type = type;
  operation.data = data;
  operation.bytes = bytes;
  return castor::c::append_new(builder, operation);
}

castor_value castor_builder_convert(castor_builder* builder, castor_value x, castor_element_type to,
                                    const castor_convert_options* options,
                                    const char* name) noexcept {
  using namespace castor;
  return c::step_to_value(builder, [&](FunctionBuilder& in, castor_value& value) {
    return c::convert(in, x, to, options, name, value);
  });
}

void castor_builder_attribute(castor_builder* builder, const castor_attribute* attribute) noexcept {
  using namespace castor;
  c::step(builder, [&](FunctionBuilder& to) -> Status {
    if (Status status = c::needed(attribute, "attribute"); !status) return status;
    Result<Attribute> given = c::attribute_of(*attribute);
    if (!given) return given.error();
    to.attribute(std::move(given).value());
    return {};
  });
}

void castor_builder_output(castor_builder* builder, castor_value value,
                           const castor_tensor_type* declared) noexcept {
  using namespace castor;
  c::step(builder, [&](FunctionBuilder& to) -> Status {
    if (declared == nullptr) {
      to.result(value);
      return {};
    }
    Result<TensorType> type = c::type_of(*declared, "output");
    if (!type) return type.error();
    to.result(value, std::move(type).value());
    return {};
  });
}

castor_status castor_builder_finish(castor_builder* builder, castor_function** function,
                                    castor_error* error) noexcept {
  using namespace castor;
  return c::guarded_make(error, function, [&](std::unique_ptr<castor_function>& made) -> Status {
    if (Status status = c::needed(builder, "builder"); !status) return status;
    Result<FunctionPtr> finished = c::finish(*builder);
    builder->spent = true;
    if (!finished) return finished.error();
    made = std::make_unique<castor_function>(std::move(finished).value());
    return {};
  });
}

}  // extern "C"
