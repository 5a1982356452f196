// SPDX-License-Identifier: Apache-2.0
// The code of conversions in every form that makes a difference, for rules that all code keeps.
#pragma once

#include <vector>

#include "jit/plan/nest.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/kernel_code.hpp"

namespace castor::test {

inline FunctionPtr function_of(const Conversion& conversion) {
  FunctionBuilder builder("f");
  const ValueId x = builder.parameter("x", {conversion.from, {"?n"}});
  builder.result(builder.convert(x, conversion.to, conversion.options));
  return std::move(builder.finish()).value();
}

/// Dense operands; three loops with every operand strided (sub-byte ones bitwise); dense operands
/// stored past the caches, where there are such stores. Between them loops, stages and
/// windows of either kind.
inline std::vector<jit::NestForm> forms_of(const jit::Nest& nest, const jit::Target& target) {
  std::vector<jit::NestForm> forms(2, jit::NestForm::dense(nest.operands()));
  forms[1].rank = 3;
  for (size_t k = 0; k < nest.operands(); ++k) {
    forms[1].access[k] = is_sub_byte(nest.element(k)) ? jit::Access::bitwise : jit::Access::strided;
  }
  for (const jit::MemoryOperand& sink : nest.program.sinks) {
    if (!jit::has_streaming_stores(target, sink.element) || forms.size() == 3) continue;
    forms.push_back(jit::NestForm::dense(nest.operands()));
    forms.back().stores = jit::Stores::streaming;
  }
  return forms;
}

}  // namespace castor::test
