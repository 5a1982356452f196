// SPDX-License-Identifier: Apache-2.0
// Lowering of one nest: the operations that its outputs need, and no others, to one lane program.
#pragma once

#include <span>

#include "jit/lower/function_facts.hpp"

namespace castor::jit {

/// The nest of an operation that stands alone, whose result is that output.
Nest nest_alone(const FunctionFacts& facts, const NestOutput& output);

/// Lowers the nest that folds into those accumulators, at least one, of reductions over the same
/// axes of operands of one shape.
Nest lower_folds(const FunctionFacts& facts, std::span<const NestOutput> outputs,
                 const Target& target);

/// Lowers the nest with those outputs, at least one, whose values have one shape. Everything that
/// they are computed from is computed in the same iteration space, back to values in memory.
Nest lower_nest(const FunctionFacts& facts, std::span<const NestOutput> outputs,
                const Target& target);

}  // namespace castor::jit
