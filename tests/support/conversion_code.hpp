// SPDX-License-Identifier: Apache-2.0
// The code of conversions in every form that makes a difference, for rules that all code keeps.
#pragma once

#include <vector>

#include "jit/nest.hpp"
#include "tests/support/conversions.hpp"

namespace castor::test {

inline FunctionPtr function_of(const Conversion& conversion) {
  FunctionBuilder builder("f");
  const ValueId x = builder.parameter("x", {conversion.from, {"?n"}});
  builder.result(builder.convert(x, conversion.to, conversion.options));
  return std::move(builder.finish()).value();
}

/// Dense operands; three loops with every operand strided; dense operands stored past the caches.
/// Between them loops and stages of either kind.
inline std::vector<jit::NestForm> forms_of(const jit::Nest& nest) {
  std::vector<jit::NestForm> forms(3, jit::NestForm::dense(nest.operands()));
  forms[1].rank = 3;
  for (jit::Access& access : forms[1].access) access = jit::Access::strided;
  forms[2].stores = jit::Stores::streaming;
  return forms;
}

}  // namespace castor::test
