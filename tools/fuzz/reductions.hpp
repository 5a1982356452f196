// SPDX-License-Identifier: Apache-2.0
// Steps that make a program smaller or plainer.
#pragma once

#include <vector>

#include "tools/fuzz/finding.hpp"
#include "tools/fuzz/program.hpp"

namespace castor::fuzz {

/// Every program that is one step smaller or plainer than this one, the boldest steps first; each
/// makes sense, each is nearer to a smallest program, and none equals it. Where an element is wrong
/// (`finding`), a value may become an input that has its element everywhere.
std::vector<Program> reductions(const Program& program, const Finding& finding);

/// The program with the data that a wrong element was computed from in every element of its inputs,
/// as far as operands broadcast on the right.
Program with_data_of(const Program& program, const Finding& finding);

}  // namespace castor::fuzz
