// SPDX-License-Identifier: Apache-2.0
// Building functions: collect, infer, name, verify, hash.
#include "ir/builder.hpp"

#include <fmt/format.h>

#include "ir/support/enumeration.hpp"
#include "ir/support/guarded.hpp"
#include "ir/verify/infer.hpp"
#include "ir/verify/name_bytes.hpp"
#include "ir/verify/requantize.hpp"
#include "ir/verify/verify.hpp"

namespace castor {

namespace {

Error mistake(std::string message, TextPosition where = {}) {
  return {ErrorCode::invalid_function, std::move(message), where};
}

Error placed(Error error, TextPosition where) {
  if (!error.where.known()) error.where = where;
  return error;
}

std::string label(const std::string& name, size_t id) {
  return name.empty() ? fmt::format("unnamed value {}", id) : "%" + name;
}

/// A written type must be the inferred one; a written `?` leaves the extent open. A target shape
/// is no part of the result's type.
bool agrees(const OpInfo& row, const WrittenType& written, const TensorType& inferred) {
  if (written.element && *written.element != inferred.element) return false;
  if (written.element && !same_quantization(written.quantization, inferred.quantization)) {
    return false;
  }
  if (!written.shape || row.suffix == TypeSuffix::shape) return true;
  return std::equal(
      written.shape->begin(), written.shape->end(), inferred.shape.begin(), inferred.shape.end(),
      [](const Dim& open, const Dim& dim) { return open == Dim::any() || open == dim; });
}

std::string to_string(const WrittenType& written) {
  const std::string element =
      written.element ? element_text({*written.element, {}, written.quantization}) : "";
  return fmt::format("{}{}", element, written.shape ? castor::to_string(*written.shape) : "");
}

/// Operands are values defined so far, or none.
Status check_operands(const Function& function, const Operation& operation) {
  for (size_t i = 0; i < operation.operands.size(); ++i) {
    const ValueId id = operation.operands[i];
    if (id == no_value || id < function.values.size()) continue;
    return mistake(fmt::format("{}: operand {} is value {}, but only {} values are defined so far",
                               name_of(operation.op), i, id, function.values.size()));
  }
  return {};
}

/// Numbers of element types and formats; what else is written, inference checks.
Status check_written(const WrittenType& written) {
  if (written.element) {
    Status status = check_enumeration("element type", *written.element, element_table.size());
    if (!status) return status;
  }
  if (!written.quantization) return {};
  return check_enumeration("quantized format", written.quantization->format,
                           quantized_table.size());
}

Status check_mode(BroadcastMode mode) {
  return check_enumeration("broadcast mode", mode, static_cast<size_t>(BroadcastMode::blocked) + 1);
}

Status check_options(const ConvolutionOptions& options) {
  Status status =
      check_enumeration("auto_pad", options.auto_pad, static_cast<size_t>(AutoPad::valid) + 1);
  if (!status) return status;
  return check_enumeration("layout", options.layout,
                           static_cast<size_t>(ConvolutionLayout::nhwc) + 1);
}

Status check_options(const RequantizeOptions& options) {
  Status status = check_enumeration("arithmetic", options.arithmetic,
                                    static_cast<size_t>(RequantizeArithmetic::embarc) + 1);
  if (!status) return status;
  return check_enumeration("rounding", options.rounding,
                           static_cast<size_t>(RequantizeRounding::nearest_even) + 1);
}

/// Writes down the absence of optional operands that were left out.
void add_absent_operands(Operation& operation) {
  if (static_cast<size_t>(operation.op) >= op_count) return;
  const OpInfo& row = info(operation.op);
  const auto required = static_cast<size_t>(row.operands - row.optional_operands);
  const auto all = static_cast<size_t>(row.operands);
  const size_t found = operation.operands.size();
  if (found >= required && found < all) operation.operands.resize(all, no_value);
}

/// The row's check of names, then the types of the results.
Result<std::vector<TensorType>> result_types(const Function& function, const Operation& operation,
                                             const WrittenType& written, size_t names) {
  if (static_cast<size_t>(operation.op) >= op_count) {
    return mistake(fmt::format("op {} is not in the op table, expected 0 to {}",
                               static_cast<int>(operation.op), op_count - 1));
  }
  const OpInfo& row = info(operation.op);
  if (names != 0 && names != static_cast<size_t>(row.results)) {
    return mistake(
        fmt::format("{}: found {} names for results, expected {}", row.name, names, row.results));
  }
  if (Status status = check_operands(function, operation); !status) return status.error();
  if (Status status = check_written(written); !status) return status.error();
  std::vector<const TensorType*> operand_types;
  for (ValueId id : operation.operands) {
    operand_types.push_back(id == no_value ? nullptr : &function.values[id].type);
  }
  return infer_types(operation, operand_types, written);
}

}  // namespace

void FunctionBuilder::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

bool FunctionBuilder::passes(const Status& status) {
  if (!status) fail(status.error());
  return status.ok();
}

/// Counts the bytes of a name and keeps it, if it may be given.
bool FunctionBuilder::take_name(const std::string& name) {
  if (name.empty()) return true;
  if (!is_value_name(name)) {
    fail(
        mistake(fmt::format("\"{}\" cannot name a value; expected letters, digits, _ . $ -, "
                            "beginning with a letter or _, or digits only",
                            name)));
  } else if (!names_.insert(name).second) {
    fail(mistake(fmt::format("%{} is defined twice", name)));
  }
  return !error_;
}

void FunctionBuilder::name(ValueId value, std::string name) {
  guarded_step([&] {
    if (type_of(value) == nullptr || !function_.values[value].name.empty()) {
      fail(mistake(fmt::format("value {} cannot be named {}", value, name)));
    } else if (take_name(name)) {
      function_.name_bytes += name.size();
      function_.values[value].name = std::move(name);
    }
    return no_value;
  });
}

ValueId FunctionBuilder::define(std::string name, TensorType type) {
  const size_t id = function_.values.size();
  const size_t name_bytes =
      function_.name.size() + function_.name_bytes + name_bytes_of(name, type);
  if (!is_within(id + 1, "values", limits_.values) ||
      !is_within(name_bytes, "bytes of names", limits_.name_bytes)) {
    return no_value;
  }
  if (id >= max_values) {
    fail(mistake(fmt::format("a function has at most {} values", max_values)));
  } else if (!take_name(name)) {
    return no_value;
  } else if (Status status = verify_type(type, label(name, id)); !status) {
    fail(status.error());
  }
  if (error_) return no_value;
  function_.name_bytes += name_bytes_of(name, type);
  function_.values.push_back({std::move(name), std::move(type)});
  return static_cast<ValueId>(id);
}

/// Else the failure is the builder's.
bool FunctionBuilder::is_within(size_t found, std::string_view what, size_t limit) {
  if (found > limit) fail(limit_exceeded("@" + function_.name, found, what, limit));
  return !error_;
}

/// Runs one step of building, unless there has been a mistake; what it throws is one.
template <class Step>
ValueId FunctionBuilder::guarded_step(const Step& step) noexcept {
  if (error_) return no_value;
  try {
    return step();
  } catch (...) {
    fail(error_of_exception());
    return no_value;
  }
}

ValueId FunctionBuilder::parameter(std::string name, TensorType type) {
  return guarded_step([&] {
    const ValueId id = define(std::move(name), std::move(type));
    if (id != no_value) function_.parameters.push_back(id);
    return id;
  });
}

ValueId FunctionBuilder::convert(ValueId value, ElementType to, const ConvertOptions& options) {
  return guarded_step([&] {
    if (!passes(check_enumerations(options))) return no_value;
    return add({.op = OpKind::convert, .operands = {value}, .attributes = attributes_of(options)},
               {.element = to, .shape = {}}, {});
  });
}

ValueId FunctionBuilder::binary(OpKind op, ValueId a, ValueId b, const BroadcastRule& how) {
  return guarded_step([&] {
    if (!passes(check_mode(how.mode))) return no_value;
    return add({.op = op, .operands = {a, b}, .attributes = attributes_of(op, how)}, {}, {});
  });
}

ValueId FunctionBuilder::unary(OpKind op, ValueId value) {
  return guarded_step([&] { return add({.op = op, .operands = {value}}, {}, {}); });
}

ValueId FunctionBuilder::clamp(ValueId value, std::optional<double> lo, std::optional<double> hi) {
  return guarded_step([&] {
    Operation operation{.op = OpKind::clamp, .operands = {value}};
    if (lo) operation.attributes.push_back({"lo", {*lo}});
    if (hi) operation.attributes.push_back({"hi", {*hi}});
    return add(std::move(operation), {}, {});
  });
}

ValueId FunctionBuilder::select(ValueId condition, ValueId a, ValueId b, BroadcastMode mode) {
  return guarded_step([&] {
    if (!passes(check_mode(mode))) return no_value;
    return add({.op = OpKind::select,
                .operands = {condition, a, b},
                .attributes = attributes_of(OpKind::select, {.mode = mode})},
               {}, {});
  });
}

ValueId FunctionBuilder::look_up(ValueId x, ValueId table, std::optional<int> axis) {
  return guarded_step([&] {
    Operation operation{.op = OpKind::look_up, .operands = {x, table}};
    if (axis) operation.attributes.push_back({"axis", {int64_t{*axis}}});
    return add(std::move(operation), {}, {});
  });
}

ValueId FunctionBuilder::reduce(OpKind op, ValueId value, const ReductionOptions& options) {
  return guarded_step([&] {
    if (options.accumulator &&
        !passes(check_enumeration("accumulator", *options.accumulator, element_table.size()))) {
      return no_value;
    }
    return add({.op = op, .operands = {value}, .attributes = attributes_of(options)}, {}, {});
  });
}

ValueId FunctionBuilder::max_pool(ValueId x, const ConvolutionOptions& options) {
  return guarded_step([&] {
    if (!passes(check_options(options))) return no_value;
    return add({.op = OpKind::max_pool, .operands = {x}, .attributes = attributes_of(options)}, {},
               {});
  });
}

ValueId FunctionBuilder::broadcast(ValueId value, Shape target, const BroadcastRule& how) {
  return guarded_step([&] {
    if (!passes(check_mode(how.mode))) return no_value;
    const OpKind op = OpKind::broadcast;
    return add({.op = op, .operands = {value}, .attributes = attributes_of(op, how)},
               {.element = {}, .shape = std::move(target)}, {});
  });
}

ValueId FunctionBuilder::reshape(ValueId value, Shape target) {
  return guarded_step([&] {
    return add({.op = OpKind::reshape, .operands = {value}},
               {.element = {}, .shape = std::move(target)}, {});
  });
}

std::pair<ValueId, ValueId> FunctionBuilder::promote(ValueId a, ValueId b,
                                                     const PromoteOptions& options) {
  const ValueId first = guarded_step([&] {
    if (!passes(check_enumeration("u64_integer_promotion_target",
                                  options.u64_integer_promotion_target, element_table.size()))) {
      return no_value;
    }
    return add({.op = OpKind::convert_promote_types,
                .operands = {a, b},
                .attributes = attributes_of(options)},
               {}, {});
  });
  return {first, first == no_value ? no_value : first + 1};
}

ValueId FunctionBuilder::conv_integer(ValueId x, ValueId w, const ConvolutionOptions& options,
                                      ValueId x_zero_point, ValueId w_zero_point) {
  return guarded_step([&] {
    if (!passes(check_options(options))) return no_value;
    return add({.op = OpKind::conv_integer,
                .operands = {x, w, x_zero_point, w_zero_point},
                .attributes = attributes_of(options)},
               {}, {});
  });
}

ValueId FunctionBuilder::matmul_integer(ValueId a, ValueId b, ValueId a_zero_point,
                                        ValueId b_zero_point) {
  return guarded_step([&] {
    return add({.op = OpKind::matmul_integer, .operands = {a, b, a_zero_point, b_zero_point}}, {},
               {});
  });
}

ValueId FunctionBuilder::requantize(ValueId x, std::optional<Quantization> to,
                                    const RequantizeOptions& options,
                                    const std::array<ValueId, 6>& parameters) {
  return guarded_step([&] {
    if (!passes(check_options(options))) return no_value;
    WrittenType written{.element = ElementType::f32, .shape = {}};
    if (to) {
      const TensorType type = quantized_type(std::move(*to), {});
      written = {.element = type.element, .shape = {}, .quantization = type.quantization};
    }
    Operation operation{.op = OpKind::requantize, .attributes = attributes_of(options)};
    operation.operands = {x};
    operation.operands.insert(operation.operands.end(), parameters.begin(), parameters.end());
    return add(std::move(operation), written, {});
  });
}

ValueId FunctionBuilder::quantize_linear(ValueId x, ValueId scale, ValueId zero_point,
                                         ElementType to, Attributes attributes) {
  return guarded_step([&] {
    return add({.op = OpKind::quantize_linear,
                .operands = {x, scale, zero_point},
                .attributes = std::move(attributes)},
               {.element = to, .shape = {}}, {});
  });
}

ValueId FunctionBuilder::dequantize_linear(ValueId x, ValueId scale, ValueId zero_point,
                                           ElementType to, Attributes attributes) {
  return guarded_step([&] {
    return add({.op = OpKind::dequantize_linear,
                .operands = {x, scale, zero_point},
                .attributes = std::move(attributes)},
               {.element = to, .shape = {}}, {});
  });
}

std::array<ValueId, 3> FunctionBuilder::dynamic_quantize_linear(ValueId x, ElementType to,
                                                                Attributes attributes) {
  const ValueId y = guarded_step([&] {
    return add({.op = OpKind::dynamic_quantize_linear,
                .operands = {x},
                .attributes = std::move(attributes)},
               {.element = to, .shape = {}}, {});
  });
  if (y == no_value) return {y, y, y};
  return {y, y + 1, y + 2};
}

std::pair<ValueId, ValueId> FunctionBuilder::dynamic_quantize_symmetric(ValueId x, ElementType to,
                                                                        Attributes attributes) {
  const ValueId y = guarded_step([&] {
    return add({.op = OpKind::dynamic_quantize_symmetric,
                .operands = {x},
                .attributes = std::move(attributes)},
               {.element = to, .shape = {}}, {});
  });
  return {y, y == no_value ? y : y + 1};
}

ValueId FunctionBuilder::qlinear_conv(const Quantized& x, const Quantized& w, ValueId y_scale,
                                      ValueId y_zero_point, ValueId bias,
                                      const ConvolutionOptions& options) {
  return guarded_step([&] {
    if (!passes(check_options(options))) return no_value;
    return add({.op = OpKind::qlinear_conv,
                .operands = {x.value, x.scale, x.zero_point, w.value, w.scale, w.zero_point,
                             y_scale, y_zero_point, bias},
                .attributes = attributes_of(options)},
               {}, {});
  });
}

ValueId FunctionBuilder::qlinear_matmul(const Quantized& a, const Quantized& b, ValueId y_scale,
                                        ValueId y_zero_point) {
  return guarded_step([&] {
    return add({.op = OpKind::qlinear_matmul,
                .operands = {a.value, a.scale, a.zero_point, b.value, b.scale, b.zero_point,
                             y_scale, y_zero_point}},
               {}, {});
  });
}

std::pair<ValueId, ValueId> FunctionBuilder::quantize_mx(ValueId x, ElementType to,
                                                         Attributes attributes,
                                                         ValueId tensor_scale) {
  const ValueId y = guarded_step([&] {
    return add({.op = OpKind::quantize_mx,
                .operands = {x, tensor_scale},
                .attributes = std::move(attributes)},
               {.element = to, .shape = {}}, {});
  });
  return {y, y == no_value ? y : y + 1};
}

ValueId FunctionBuilder::constant(const TensorType& type, std::span<const std::byte> bytes) {
  return guarded_step([&] {
    Operation operation{.op = OpKind::constant};
    operation.data = std::make_shared<const ConstantData>(
        ConstantData{.binding = {}, .bytes = {bytes.begin(), bytes.end()}});
    return add(std::move(operation),
               {.element = type.element, .shape = type.shape, .quantization = type.quantization},
               {});
  });
}

ValueId FunctionBuilder::append(Operation operation, const WrittenType& written,
                                std::span<const std::string> result_names) {
  return guarded_step([&] { return add(std::move(operation), written, result_names); });
}

void FunctionBuilder::attribute(Attribute attribute) {
  guarded_step([&] {
    function_.attributes.push_back(std::move(attribute));
    return no_value;
  });
}

ValueId FunctionBuilder::add(Operation operation, const WrittenType& written,
                             std::span<const std::string> result_names) {
  if (!is_within(function_.operations.size() + 1, "operations", limits_.operations)) {
    *error_ = placed(std::move(*error_), operation.where);
    return no_value;
  }
  add_absent_operands(operation);
  auto types = result_types(function_, operation, written, result_names.size());
  if (!types) {
    fail(placed(types.error(), operation.where));
    return no_value;
  }
  if (info(operation.op).suffix == TypeSuffix::shape) operation.target = written.shape;
  operation.results.clear();
  for (size_t i = 0; i < types->size(); ++i) {
    const TensorType& type = (*types)[i];
    const std::string name = result_names.empty() ? std::string() : result_names[i];
    // What is written of a composition is its first result's.
    const bool is_written = i == 0 || info(operation.op).family != OpFamily::composition;
    if (is_written && !agrees(info(operation.op), written, type)) {
      fail(mistake(fmt::format("{}: {} has type {}, but {} is written", name_of(operation.op),
                               label(name, function_.values.size()), castor::to_string(type),
                               to_string(written)),
                   operation.where));
    }
    if (!error_) operation.results.push_back(define(name, type));
  }
  if (error_) {
    *error_ = placed(std::move(*error_), operation.where);
    return no_value;
  }
  if (operation.data && !operation.data_id.is_of(operation.data)) {
    operation.data_hash = content_hash(operation.data->bytes);
    operation.data_id = ContentId(operation.data);
  }
  function_.operations.push_back(std::move(operation));
  return function_.operations.back().results.front();
}

void FunctionBuilder::result(ValueId value, std::optional<TensorType> declared) {
  guarded_step([&] {
    add_result(value, std::move(declared));
    return no_value;
  });
}

void FunctionBuilder::add_result(ValueId value, std::optional<TensorType> declared) {
  const size_t index = function_.results.size();
  if (value >= function_.values.size()) {
    return fail(mistake(fmt::format("result {} is value {}, but only {} values are defined so far",
                                    index, value, function_.values.size())));
  }
  const Value& source = function_.values[value];
  if (declared) {
    const std::string what = fmt::format("result {} ({})", index, label(source.name, value));
    Status status = verify_declared_type(*declared, source.type, what);
    if (!status) return fail(status.error());
  }
  function_.results.push_back(value);
  function_.result_types.push_back(declared ? *declared : source.type);
}

/// Fresh names are the numbers that nobody has given, in the order of values.
void FunctionBuilder::name_the_unnamed() {
  size_t next = 0;
  for (Value& value : function_.values) {
    if (!value.name.empty()) continue;
    while (names_.contains(std::to_string(next))) ++next;
    value.name = std::to_string(next++);
    function_.name_bytes += value.name.size();
  }
}

Result<FunctionPtr> FunctionBuilder::finish() {
  return guarded([&]() -> Result<FunctionPtr> {
    // Whatever fails, the builder is empty afterwards; its limits stay.
    FunctionBuilder empty({});
    empty.limits_ = limits_;
    FunctionBuilder mine = std::exchange(*this, std::move(empty));
    if (mine.error_) return std::move(*mine.error_);
    mine.name_the_unnamed();
    Function& function = mine.function_;
    if (Status status = verify(function); !status) return status.error();
    function.hash = structural_hash(function);
    function.name_bytes += function.name.size();
    return std::make_shared<const Function>(std::move(function));
  });
}

}  // namespace castor
