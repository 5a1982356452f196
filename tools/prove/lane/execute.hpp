// SPDX-License-Identifier: Apache-2.0
// Lane programs on one element of each source, as terms.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/support/result.hpp"
#include "jit/lane/program.hpp"
#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// What a program stores for one element.
struct LaneResult {
  std::vector<Term> elements;  ///< by sink: the element's bits
  /// 1 where an instruction's precondition does not hold: a lane that a store takes for one that
  /// fits, a divisor of 0.
  Term broken;
};

/// What a program reads of each source for one element: the element's bits, or all entries where
/// the source is a table.
using SourceElements = std::vector<std::vector<Term>>;

/// Executes the program. Fails (unsupported) where it has an instruction that terms have no meaning
/// for.
Result<LaneResult> execute(const jit::LaneProgram& program, const SourceElements& sources,
                           Terms& terms);

/// Executes a program without tables on elements given by their bits.
Result<LaneResult> execute(const jit::LaneProgram& program, std::span<const Term> elements,
                           Terms& terms);

}  // namespace castor::prove
