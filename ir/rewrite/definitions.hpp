// SPDX-License-Identifier: Apache-2.0
// Which operation defines a value: inside ir/ only.
#pragma once

#include <vector>

#include "ir/function.hpp"

namespace castor::detail {

/// By value, the operation that defines it, or null; as far as they are rewritten.
using Definitions = std::vector<const Operation*>;

/// Those of a whole function, which parameters have none of.
inline Definitions definitions_of(const Function& function) {
  Definitions definitions(function.values.size(), nullptr);
  for (const Operation& operation : function.operations) {
    for (ValueId result : operation.results) definitions[result] = &operation;
  }
  return definitions;
}

}  // namespace castor::detail
