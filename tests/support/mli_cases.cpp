// SPDX-License-Identifier: Apache-2.0
#include "tests/support/mli_cases.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "ir/builder.hpp"
#include "ir/verify/requantize.hpp"

namespace castor::test {

namespace {

using nlohmann::json;

Dims dims_of(const json& numbers) {
  Dims dims;
  for (const json& number : numbers) dims.push_back(number.get<int64_t>());
  return dims;
}

MliSide side_of(const json& object, const std::string& side) {
  const json& quantization = object.at(side + "_q");
  return {.format = object.at(side),
          .axis = quantization.at("dim"),
          .scale = quantization.at("scale").get<std::vector<int32_t>>(),
          .frac = quantization.at("frac_bits").get<std::vector<int32_t>>(),
          .zero_point = quantization.at("zero_point").get<std::vector<int32_t>>(),
          .strides = dims_of(object.at(side + "_stride"))};
}

std::vector<uint64_t> elements_of(const json& numbers, const std::string& format) {
  const auto row = quantized_format_named(format);
  const int bits = row ? bits_of(info(*row).container) : 32;
  std::vector<uint64_t> elements;
  for (const json& number : numbers) {
    elements.push_back(static_cast<uint64_t>(number.get<int64_t>()) &
                       (~uint64_t{0} >> (64 - bits)));
  }
  return elements;
}

void add_open_parameters(FunctionBuilder& builder, const std::string& side, const TensorType& type,
                         int64_t slices, ValueId* operands) {
  if (!type.quantization) return;
  for (size_t r = 0; r < quantization_rules.size(); ++r) {
    const QuantizationRule& rule = quantization_rules[r];
    if (rule.asymmetric_only && !info(type.quantization->format).is_asymmetric) continue;
    const Shape shape = type.quantization->is_per_axis() ? Shape{slices} : Shape{};
    operands[r] = builder.parameter(fmt::format("{}_{}", side, rule.name), {rule.element, shape});
  }
}

}  // namespace

std::vector<MliCase> mli_cases(const std::string& file) {
  std::ifstream lines(std::string(CASTOR_TEST_DATA) + "/mli/" + file);
  if (!lines) throw std::runtime_error("no " + file);
  std::vector<MliCase> cases;
  for (std::string line; std::getline(lines, line);) {
    const json object = json::parse(line);
    MliCase each;
    each.source = side_of(object, "src");
    each.destination = side_of(object, "dst");
    each.shape = dims_of(object.at("shape"));
    each.is_exact = object.value("arithmetic", "embarc") == "exact";
    each.is_half_up = object.at("round") == "up";
    each.input = elements_of(object.at("in"), each.source.format);
    each.output = elements_of(object.at("out"), each.destination.format);
    each.name = fmt::format("{} {}: {} -> {}", file, object.at("case").get<int>(),
                            each.source.format, each.destination.format);
    cases.push_back(std::move(each));
  }
  return cases;
}

TensorType mli_type(const MliSide& side, const Dims& shape, bool at_run_time) {
  const auto format = quantized_format_named(side.format);
  if (!format) return {ElementType::f32, to_shape(shape)};
  Quantization quantization{.format = *format, .axis = side.axis};
  if (!at_run_time) {
    quantization.frac = side.frac;
    if (info(*format).is_asymmetric) {
      quantization.scale = side.scale;
      quantization.zero_point = side.zero_point;
    }
  }
  return quantized_type(quantization, to_shape(shape));
}

FunctionPtr mli_function(const MliCase& each, bool at_run_time) {
  FunctionBuilder builder("f");
  const TensorType from = mli_type(each.source, each.shape, at_run_time);
  const TensorType to = mli_type(each.destination, each.shape, at_run_time);
  const ValueId x = builder.parameter("x", from);
  std::array<ValueId, 6> parameters = FunctionBuilder::no_parameters;
  if (at_run_time) {
    const auto slices = [&](const MliSide& side) {
      return side.axis < 0 ? int64_t{1} : each.shape[side.axis];
    };
    add_open_parameters(builder, "source", from, slices(each.source), parameters.data());
    add_open_parameters(builder, "destination", to, slices(each.destination),
                        parameters.data() + 3);
  }
  const RequantizeOptions options = {
      .arithmetic = each.is_exact ? RequantizeArithmetic::exact : RequantizeArithmetic::embarc,
      .rounding = each.is_half_up ? RequantizeRounding::half_up : RequantizeRounding::nearest_even};
  std::optional<Quantization> quantization;
  if (to.quantization) quantization = *to.quantization;
  builder.result(builder.requantize(x, quantization, options, parameters));
  const Result<FunctionPtr> function = builder.finish();
  if (!function) throw std::runtime_error(each.name + ": " + function.error().to_string());
  return *function;
}

}  // namespace castor::test
