// SPDX-License-Identifier: Apache-2.0
#include "jit/requantize/method.hpp"

#include <algorithm>
#include <iterator>

#include "jit/lane/optimize.hpp"
#include "jit/requantize/methods.hpp"

namespace castor::jit {

namespace {

constexpr LaneType lane_of(ElementType constant) {
  return constant == ElementType::i32   ? LaneType::i32
         : constant == ElementType::f32 ? LaneType::f32
                                        : LaneType::f64;
}

}  // namespace

LaneId RequantizeLanes::constant(size_t index) const {
  return builder.load(static_cast<int>(1 + index), lane_of(constants_[index]));
}

std::vector<const RequantizeMethod*> requantize_methods(const RequantizeForm& form) {
  const std::array<const RequantizeMethod*, 14> all = {
      &linear_method(),         &rounded_float_method(),           &split_rounded_float_method(),
      &float_quotient_method(), &embarc_from_float_method(),       &embarc_to_float_method(),
      &to_float_method(),       &to_float_through_double_method(), &saturating_i32_product_method(),
      &i32_product_method(),    &rounded_double_method(),          &i32_accumulator_method(),
      &double_method(),         &cut_accumulator_method(),
  };
  std::vector<const RequantizeMethod*> methods;
  std::ranges::copy_if(all, std::back_inserter(methods),
                       [&](const RequantizeMethod* method) { return method->takes(form); });
  return methods;
}

LaneProgram requantize_program(const RequantizeMethod& method, const RequantizeForm& form,
                               const Target& target) {
  LaneProgram program;
  const std::span<const ElementType> constants = method.constants(form);
  program.sources.push_back({form.from_element()});
  for (ElementType constant : constants) program.sources.push_back({constant});
  program.sinks.push_back({form.to_element()});
  LaneBuilder builder(target, program);
  method.lower(form, RequantizeLanes(builder, constants));
  optimize(program, target);
  return program;
}

}  // namespace castor::jit
