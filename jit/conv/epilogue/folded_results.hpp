// SPDX-License-Identifier: Apache-2.0
// Results of epilogues that a later nest folds as a whole: the minimum and maximum of a layer's
// output, from which the next layer's scale comes. Kernels that apply the epilogue fold each vector
// as they store it, so that nothing is read for that again. Folds are minima and maxima of 32-bit
// lanes: these may take an element twice, and kernels store some twice.
#pragma once

#include <optional>
#include <vector>

#include "jit/conv/epilogue/epilogue.hpp"

namespace castor::jit {

/// Numbers that one result is folded into at most: minimum and maximum.
inline constexpr size_t max_folds = 2;

/// Marks these results (Nest::folded).
void mark_folded_results(const Function& function, std::vector<Nest>& nests);

/// The epilogue with the folds of the nest that folds the output; nothing where kernels cannot
/// apply that.
std::optional<TileEpilogue> with_folds(TileEpilogue epilogue, size_t output, const Nest& folding);

}  // namespace castor::jit
