// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/program.hpp"

#include "ir/builder.hpp"
#include "tests/support/samples.hpp"

namespace castor::fuzz {

namespace {

constexpr std::array<const char*, 3> names = {"a", "b", "c"};

Shape written_shape(const InputSpec& input) {
  Shape shape;
  for (const AxisSpec& axis : input.axes) {
    switch (axis.kind) {
      case AxisSpec::Kind::fixed: shape.emplace_back(axis.extent); break;
      case AxisSpec::Kind::any: shape.push_back(Dim::any()); break;
      case AxisSpec::Kind::named: shape.push_back(Dim::named(names[axis.name])); break;
    }
  }
  return shape;
}

std::optional<TensorType> declared_type(const Program& program, const ResultSpec& result) {
  if (!result.declares_unknowns) return {};
  const auto rank = static_cast<size_t>(program.shape_of(result.value).rank());
  return TensorType{program.element_of(result.value), Shape(rank, Dim::any())};
}

}  // namespace

ElementType Program::element_of(size_t value) const {
  if (value < inputs.size()) return inputs[value].element;
  if (value < first_conversion()) return constants[value - inputs.size()].element;
  return conversions[value - first_conversion()].to;
}

size_t Program::root_of(size_t value) const {
  while (value >= first_conversion()) value = conversions[value - first_conversion()].operand;
  return value;
}

Dims Program::shape_of(size_t value) const {
  const size_t root = root_of(value);
  if (root >= inputs.size()) return constants[root - inputs.size()].shape;
  Dims shape;
  for (const AxisSpec& axis : inputs[root].axes) {
    const bool is_named = axis.kind == AxisSpec::Kind::named;
    shape.push_back(is_named ? named_sizes[axis.name] : axis.extent);
  }
  return shape;
}

std::optional<size_t> Program::interleaved_behind(size_t result) const {
  for (size_t i = result + 1; i < results.size(); ++i) {
    if (results[i].interleaved_with == static_cast<int>(result)) return i;
  }
  return {};
}

Placement Program::placement_of(size_t result) const {
  const ResultSpec& spec = results[result];
  if (spec.in_place_of != ResultSpec::nowhere) {
    return inputs[static_cast<size_t>(spec.in_place_of)].place;
  }
  const bool is_behind = spec.interleaved_with != ResultSpec::nowhere;
  if (!is_behind && !interleaved_behind(result)) return spec.place;
  Placement place =
      is_behind ? results[static_cast<size_t>(spec.interleaved_with)].place : spec.place;
  const int64_t whole = aligned_elements(element_of(spec.value));
  place.strides = dense_strides(shape_of(spec.value));
  for (int64_t& stride : place.strides) stride *= 2 * whole;
  if (is_behind) place.offset += whole;
  return place;
}

Result<FunctionPtr> build_function(const Program& program) {
  FunctionBuilder builder("f");
  std::vector<ValueId> values;
  values.reserve(program.value_count());
  for (const InputSpec& input : program.inputs) {
    values.push_back(builder.parameter("", {input.element, written_shape(input)}));
  }
  for (const ConstantSpec& constant : program.constants) {
    values.push_back(builder.constant({constant.element, to_shape(constant.shape)},
                                      samples::pack(constant.element, constant.patterns)));
  }
  for (const ConvertSpec& conversion : program.conversions) {
    values.push_back(
        builder.convert(values[conversion.operand], conversion.to, conversion.options));
  }
  for (const ResultSpec& result : program.results) {
    builder.result(values[result.value], declared_type(program, result));
  }
  return builder.finish();
}

}  // namespace castor::fuzz
