// SPDX-License-Identifier: Apache-2.0
// Drawing programs that hit one coverage cell.
#pragma once

#include "tools/fuzz/cells.hpp"
#include "tools/fuzz/program.hpp"
#include "tools/fuzz/random.hpp"

namespace castor::fuzz {

/// A program that hits the cell, as a rule. What the cell does not ask for is drawn as ever.
Program generate_for(Random& random, const Cell& cell);

}  // namespace castor::fuzz
