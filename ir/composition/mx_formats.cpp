// SPDX-License-Identifier: Apache-2.0
#include "ir/composition/mx_formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/composition/definition.hpp"

namespace castor {

Result<const MxFormat*> mx_format_of(const CompositionCall& call) {
  const std::string_view name = call.identifier("format");
  const MxFormat* format = mx_format_named(name);
  if (format != nullptr) return format;
  // Types are inferred before the verifier looks at attributes.
  const std::string found = name.empty() ? "no format" : fmt::format("format = {}", name);
  return call.mistake(fmt::format("{}, expected {}", found, fmt::join(mx_format_names, ", ")));
}

}  // namespace castor
