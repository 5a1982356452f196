// SPDX-License-Identifier: Apache-2.0
#include "jit/dump/dump_requantization.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "ir/text/text.hpp"
#include "ir/verify/requantize.hpp"
#include "jit/plan/access_pattern.hpp"

namespace castor::jit {

namespace {

/// The operation that a nest computes.
struct Requantization {
  const Operation& operation;
  QuantizationPtr from;
  QuantizationPtr to;
  Dims extents;

  int axis() const { return requantize_axis(from, to); }
  RequantizedTensors tensors() const {
    return {extents, dense_strides(extents), dense_strides(extents), axis()};
  }
  int64_t slices() const { return axis() < 0 ? 1 : extents[axis()]; }
  bool is_open() const {
    return std::ranges::any_of(operation.operands.begin() + 1, operation.operands.end(),
                               [](ValueId id) { return id != no_value; });
  }
};

Result<Requantization> requantization_of(const Function& function, const Nest& nest) {
  const Operation& operation = function.operations[*nest.requantization];
  const Result<BoundShapes> shapes = likely_shapes(function);
  if (!shapes) return shapes.error();
  return Requantization{operation, function.type_of(operation.operands[0]).quantization,
                        function.type_of(operation.results[0]).quantization,
                        shapes->values[operation.operands[0]]};
}

std::vector<const RequantizeMethod*> likely_methods(const RequantizeForm& form,
                                                    const Requantization& requantization) {
  if (!requantization.is_open()) {
    const auto& [operation, from, to, extents] = requantization;
    return {choose_method(form, from, to, requantization.slices()).method};
  }
  return requantize_methods(form);
}

bool looks_up(const RequantizeForm& form, const Requantization& requantization,
              const Target& target) {
  const Dims& extents = requantization.extents;
  const SliceRun run = slice_run(requantization.tensors());
  const int64_t slices = std::max<int64_t>(requantization.slices(), 1);
  return takes_byte_tables(form, target, run.elements, element_count(extents).value_or(0) / slices,
                           requantization.is_open());
}

}  // namespace

Result<LikelyRequantization> likely_requantization(const Function& function, const Nest& nest,
                                                   const Target& target) {
  const Result<Requantization> requantization = requantization_of(function, nest);
  if (!requantization) return requantization.error();
  const Dims& extents = requantization->extents;
  LikelyRequantization likely;
  const auto form = requantize_form(function, requantization->operation);
  if (!form) {
    likely.nest =
        copy_nest(ElementType::f32, requantization->operation.operands[0], extents.rank(), target);
    likely.form = likely_form(function, likely.nest, target);
    return likely;
  }
  likely.methods = likely_methods(*form, *requantization);
  likely.nest = requantize_nest(*likely.methods.front(), *form, target);
  if (element_count(extents).value_or(0) == 0) {
    likely.form = NestForm::dense(likely.nest.operands());
    return likely;
  }
  const int64_t max_elements =
      max_joined_elements(likely.methods, *form, requantization->is_open());
  const RequantizedTensors tensors = join_rows(requantization->tensors(), max_elements).tensors;
  const std::vector<Dims> strides = requantize_strides(likely.nest, tensors);
  likely.form = nest_space(likely.nest, tensors.extents, strides, target).form;
  return likely;
}

bool looks_bytes_up(const Function& function, const Nest& nest, const Target& target) {
  const Result<Requantization> requantization = requantization_of(function, nest);
  if (!requantization) return false;
  const auto form = requantize_form(function, requantization->operation);
  return form && looks_up(*form, *requantization, target);
}

Result<std::string> requantization_text(const Function& function, const Nest& nest,
                                        const Target& target) {
  const Result<Requantization> requantization = requantization_of(function, nest);
  if (!requantization) return requantization.error();
  const Result<LikelyRequantization> likely = likely_requantization(function, nest, target);
  if (!likely) return likely.error();
  std::string text = fmt::format("  operation {}\n", print(function, requantization->operation));
  if (likely->methods.empty()) return text + "  method   a copy\n";
  std::vector<std::string_view> names;
  for (const RequantizeMethod* method : likely->methods) names.push_back(method->name());
  text += fmt::format("  method   {}{}\n", fmt::join(names, ", else "),
                      requantization->is_open() ? ": the first that is exact for all slices" : "");
  const auto form = requantize_form(function, requantization->operation);
  text += fmt::format("  slices   {}, each with {} constants\n", requantization->slices(),
                      likely->methods.front()->constants(*form).size());
  if (looks_up(*form, *requantization, target)) {
    return text + "  bytes    looked up in 256 for each slice, which the method makes\n";
  }
  return text + fmt::format("  loops    {}\n", likely->form.rank) +
         loops_text(likely->nest, likely->form, target);
}

}  // namespace castor::jit
