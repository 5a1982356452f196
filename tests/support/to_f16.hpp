// SPDX-License-Identifier: Apache-2.0
// A runtime, and a function for it, where any would do.
#pragma once

#include <castor/castor.hpp>

#include <string_view>
#include <utility>

namespace castor::test {

inline constexpr std::string_view to_f16_text =
    "func @to_f16(%x: f32[?n, ?c]) -> (f16[?n, ?c]) {\n"
    "  %y = convert %x : f16\n"
    "  return %y\n"
    "}\n";

inline Runtime make_runtime(const RuntimeOptions& options = {}) {
  return std::move(Runtime::create(options)).value();
}

}  // namespace castor::test
