// SPDX-License-Identifier: Apache-2.0
#include "tools/castor/describe.hpp"

#include <fmt/format.h>

#include "ir/rewrite/canonicalize.hpp"
#include "ir/text/text.hpp"
#include "jit/dump/dump.hpp"
#include "jit/listing/listing.hpp"

namespace castor::tools {

Dims coordinates(int64_t index, const Dims& shape) {
  Dims at = Dims::filled(shape.rank(), 0);
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    at[axis] = index % shape[axis];
    index /= shape[axis];
  }
  return at;
}

std::string describe_function(const FunctionPtr& function) {
  const FunctionPtr canonical = canonicalize(function);
  std::string text = fmt::format("\nfunction:\n{}", print(*function));
  if (canonical != function) text += fmt::format("\ncanonicalised:\n{}", print(*canonical));
  return text;
}

std::string describe_code(const FunctionPtr& function, jit::Tier tier) {
  jit::Target target;
  target.tier = tier;
  const auto codes = jit::emit_annotated(*canonicalize(function), target);
  if (!codes) return {};
  std::string text;
  for (const jit::MachineCode& code : *codes) {
    const Result<std::string> lines = jit::listing(code);
    if (lines) text += fmt::format("\ncode for {}, dense operands:\n{}", name_of(tier), *lines);
  }
  return text;
}

}  // namespace castor::tools
