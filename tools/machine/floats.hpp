// SPDX-License-Identifier: Apache-2.0
// The float formats of instructions, by their width.
#pragma once

#include "tools/prove/term/float_format.hpp"

namespace castor::machine {

using prove::FloatFormat;
using prove::Rounding;

constexpr FloatFormat format_of(int bits) {
  return bits == 16 ? prove::f16_format : bits == 32 ? prove::f32_format : prove::f64_format;
}

}  // namespace castor::machine
