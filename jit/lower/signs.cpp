// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/signs.hpp"

#include <cmath>
#include <optional>

namespace castor::jit {

Signs signs_of(const Operation& operation) {
  switch (operation.op) {
    case OpKind::relu:
    case OpKind::abs: return Signs::clear;
    case OpKind::clamp: {
      // A bound keeps its sign when it is rounded to the type that is clamped.
      const std::optional<double> lo = find_number(operation.attributes, "lo");
      const std::optional<double> hi = find_number(operation.attributes, "hi");
      const bool is_clear = lo && !std::signbit(*lo) && !(hi && std::signbit(*hi));
      return is_clear ? Signs::clear : Signs::any;
    }
    default: return Signs::any;
  }
}

}  // namespace castor::jit
