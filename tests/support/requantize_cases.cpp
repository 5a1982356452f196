// SPDX-License-Identifier: Apache-2.0
#include "tests/support/requantize_cases.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "ir/verify/requantize.hpp"

namespace castor::test {

namespace {

/// The first slice's parameters as numbers: value = (x - zero_point) * step.
struct Line {
  double step = 1;
  double zero_point = 0;
};

Line line_of(const QuantizationPtr& side) {
  if (!side) return {};
  Line line;
  if (side->scale) line.step = side->scale->front();
  line.step = std::ldexp(line.step, -side->frac->front());
  if (side->zero_point) line.zero_point = side->zero_point->front();
  return line;
}

ElementType element_of(const QuantizationPtr& side) {
  return side ? info(side->format).container : ElementType::f32;
}

void add_integer(double number, ElementType type, std::vector<uint64_t>& all) {
  const double min = static_cast<double>(integer_min(type));
  const double max = static_cast<double>(integer_max(type));
  for (int beside = -2; beside <= 2; ++beside) {
    const double clamped = std::min(max, std::max(min, std::floor(number) + beside));
    all.push_back(static_cast<uint64_t>(static_cast<int64_t>(clamped)) &
                  (~uint64_t{0} >> (64 - bits_of(type))));
  }
}

void add_float(double number, std::vector<uint64_t>& all) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(number));
  for (uint32_t beside : {0u, 1u, ~0u}) all.push_back(bits + beside);
}

void add_special(ElementType type, std::vector<uint64_t>& all) {
  if (type != ElementType::f32) {
    for (int bit = 0; bit < bits_of(type); ++bit) {
      add_integer(std::ldexp(1, bit), type, all);
      add_integer(-std::ldexp(1, bit), type, all);
    }
    return;
  }
  for (uint64_t bits : {0x00000000u, 0x00000001u, 0x007fffffu, 0x00800000u, 0x7f7fffffu,
                        0x7f800000u, 0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0x3effffffu,
                        0x3f000000u, 0x4b000000u, 0x4b7fffffu, 0x4effffffu, 0x4f000000u}) {
    all.push_back(bits);
    all.push_back(bits | 0x80000000u);
  }
}

void add_operands(FunctionBuilder& builder, const std::string& side, const QuantizationPtr& given,
                  int64_t slices, ValueId* operands) {
  for (size_t r = 0; r < quantization_rules.size(); ++r) {
    const QuantizationRule& rule = quantization_rules[r];
    if (!given || !((*given).*rule.parameter)) continue;
    const Shape shape = given->is_per_axis() ? Shape{slices} : Shape{};
    operands[r] = builder.parameter(fmt::format("{}_{}", side, rule.name), {rule.element, shape});
  }
}

std::optional<Quantization> type_of(const QuantizationPtr& given, bool at_run_time) {
  if (!given) return {};
  if (!at_run_time) return *given;
  return Quantization{.format = given->format, .axis = given->axis};
}

}  // namespace

std::string RequantizeCase::name() const {
  const auto text = [](const QuantizationPtr& side) { return side ? to_string(*side) : "f32"; };
  fuzz::RequantizeCell form{.options = options};
  if (from) form.from = from->format;
  if (to) form.to = to->format;
  return fmt::format("{}: {} -> {}", describe(form), text(from), text(to));
}

std::vector<fuzz::RequantizeCell> requantize_forms_from(
    const std::vector<std::optional<QuantizedFormat>>& sources) {
  std::vector<fuzz::RequantizeCell> forms;
  for (size_t number = 0; number < fuzz::requantize_cell_count; ++number) {
    const fuzz::RequantizeCell form = fuzz::requantize_cell(number);
    if (!form.from && !form.to) continue;
    if (std::ranges::find(sources, form.from) != sources.end()) forms.push_back(form);
  }
  return forms;
}

std::vector<fuzz::RequantizeCell> requantize_forms() {
  using enum QuantizedFormat;
  return requantize_forms_from({std::nullopt, fx8, fx16, sa8, sa32});
}

RequantizeCase draw_case(fuzz::Random& random, const fuzz::RequantizeCell& form, int from_axis,
                         int to_axis, int64_t slices) {
  fuzz::DrawnSide from{.format = form.from, .axis = from_axis};
  fuzz::DrawnSide to{.format = form.to, .axis = to_axis};
  fuzz::draw_ranges(random, from, to);
  return {fuzz::draw_quantization(random, from, slices),
          fuzz::draw_quantization(random, to, slices), form.options};
}

FunctionPtr requantize_function(const RequantizeCase& each, const Dims& shape, bool at_run_time) {
  FunctionBuilder builder("f");
  const std::optional<Quantization> from = type_of(each.from, at_run_time);
  const std::optional<Quantization> to = type_of(each.to, at_run_time);
  const Shape extents = to_shape(shape);
  const ValueId x = builder.parameter(
      "x", from ? quantized_type(*from, extents) : TensorType{ElementType::f32, extents});
  std::array<ValueId, 6> parameters = FunctionBuilder::no_parameters;
  if (at_run_time) {
    const auto slices = [&](const QuantizationPtr& side) {
      return side && side->is_per_axis() ? shape[side->axis] : int64_t{1};
    };
    add_operands(builder, "source", each.from, slices(each.from), parameters.data());
    add_operands(builder, "destination", each.to, slices(each.to), parameters.data() + 3);
  }
  builder.result(builder.requantize(x, to, each.options, parameters));
  const Result<FunctionPtr> function = builder.finish();
  EXPECT_TRUE(function) << each.name() << ": " << function.error().to_string();
  return function ? *function : nullptr;
}

std::vector<Patterns> parameters_of(const RequantizeCase& each) {
  std::vector<Patterns> parameters;
  for (const QuantizationPtr& side : {each.from, each.to}) {
    for (const QuantizationRule& rule : quantization_rules) {
      if (!side || !((*side).*rule.parameter)) continue;
      const std::vector<int32_t>& entries = *((*side).*rule.parameter);
      Patterns parameter{rule.element, {}, {}};
      if (side->is_per_axis()) parameter.shape = {static_cast<int64_t>(entries.size())};
      for (int32_t entry : entries) {
        parameter.elements.push_back(static_cast<uint64_t>(entry) &
                                     (~uint64_t{0} >> (64 - bits_of(rule.element))));
      }
      parameters.push_back(std::move(parameter));
    }
  }
  return parameters;
}

std::vector<uint64_t> edge_elements(fuzz::Random& random, const RequantizeCase& each) {
  const Line from = line_of(each.from);
  const Line to = line_of(each.to);
  const ElementType source = element_of(each.from);
  const ElementType destination = element_of(each.to);
  std::vector<double> results = {-2147483648.5, -2147483648.0, 2147483647.5, 2147483648.0};
  if (each.to) {
    for (double beside : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
      results.push_back(static_cast<double>(integer_min(destination)) + beside);
      results.push_back(static_cast<double>(integer_max(destination)) + beside);
      results.push_back(to.zero_point + beside);
    }
  }
  for (int i = 0; i < 40; ++i) {
    const int64_t max = int64_t{1} << random.between(1, bits_of(destination) - 1);
    results.push_back(static_cast<double>(random.between(-max, max)) + 0.5);
  }
  std::vector<uint64_t> elements;
  add_special(source, elements);
  for (double result : results) {
    const double value = (result - to.zero_point) * to.step;
    if (source == ElementType::f32) {
      add_float(value, elements);
    } else {
      add_integer(from.zero_point + value / from.step, source, elements);
    }
  }
  return elements;
}

}  // namespace castor::test
