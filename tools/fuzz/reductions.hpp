// SPDX-License-Identifier: Apache-2.0
// Steps that make a program smaller or plainer.
#pragma once

#include <vector>

#include "tools/fuzz/finding.hpp"
#include "tools/fuzz/program.hpp"

namespace castor::fuzz {

/// Every program that is one step smaller or plainer than this one, the boldest steps first; each
/// makes sense, each is nearer to a smallest program, and none equals it.
std::vector<Program> reductions(const Program& program);

/// The program with the data that a wrong element was computed from in every element of its input,
/// and zeros in the other inputs.
Program with_data_of(const Program& program, const Finding& finding);

}  // namespace castor::fuzz
