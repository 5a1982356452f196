// SPDX-License-Identifier: Apache-2.0
// Pairs of programs that differ in one thing. What caches remember of the first must not serve the
// second: where a key lacks what they differ in, the second runs the first one's code.
#pragma once

#include <optional>

#include "tools/fuzz/program.hpp"

namespace castor::fuzz {

/// The program with one attribute, element type, constant, extent, operation, order of operands or
/// option changed. It depends on the program and the seed alone; nothing where no change that was
/// drawn makes sense.
std::optional<Program> neighbour_of(const Program& program, uint64_t seed);

}  // namespace castor::fuzz
