// SPDX-License-Identifier: Apache-2.0
// Results of epilogues that a later nest folds as a whole: the minimum and maximum of a layer's
// output, from which the next layer's scale comes. Kernels that apply the epilogue fold each vector
// as they store it, so that nothing is read for that again. They fold 32-bit lanes,
// never into sums, since kernels store some elements twice.
#pragma once

#include <span>
#include <vector>

#include "jit/conv/epilogue/epilogue.hpp"

namespace castor::jit {

/// Numbers that one result is folded into at most: minimum, maximum, and whether there is a NaN.
inline constexpr size_t max_folds = 3;

/// Marks these results (Nest::folded).
void mark_folded_results(const Function& function, std::vector<Nest>& nests);

/// The ways in which kernels may apply the epilogue of a nest, the best one first: with the folds
/// of a result, where there are some, and without.
std::vector<TileEpilogue> ways_to_apply(TileEpilogue epilogue, const Nest& nest,
                                        std::span<const Nest> nests);

}  // namespace castor::jit
