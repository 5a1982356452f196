// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/nest_description.hpp"

#include <fmt/format.h>

#include "jit/dump/dump.hpp"
#include "runtime/observe/code_name.hpp"

namespace castor {

std::string NestDescription::name(std::string_view key) const {
  return code_name(function_, nest_, form_, target_, key);
}

bool NestDescription::computes_operations() const {
  return function_ != nullptr && nest_.method.empty() && !operations_of(*function_, nest_).empty();
}

std::string NestDescription::text() const {
  if (computes_operations()) return jit::print(*function_, nest_, form_, target_);
  std::string text = fmt::format("  loops    {}\n", form_.rank);
  for (size_t k = 0; k < nest_.operands(); ++k) {
    text += fmt::format("  {}  {}, {}\n", k < nest_.inputs.size() ? "source" : "sink  ",
                        name_of(nest_.element(k)), name_of(form_.access[k]));
  }
  return text + jit::loops_text(nest_, form_, target_);
}

std::optional<Result<jit::MachineCode>> NestDescription::annotated() const {
  if (computes_operations()) return jit::emit_annotated(*function_, nest_, form_, target_);
  return jit::emit_annotated(nest_, form_, target_);
}

}  // namespace castor
