// SPDX-License-Identifier: Apache-2.0
// Canonical form: the same results from fewer operations.
#pragma once

#include <string>

#include "ir/function.hpp"
#include "ir/support/export.hpp"

namespace castor {

/// Expands compositions (see expand_compositions), computes what follows from constants (see
/// fold_constants), leaves out zero points of zeros (see drop_zero_points), splits matrix products
/// (see split_zero_points) and large windows (see split_windows), finds extremes before they are
/// widened (see narrow_reductions), writes promotions as conversions, folds operations that change
/// nothing, integer steps of quantization that do so or are a clamp (see detail::clamp_of_offsets),
/// merges conversions that compose exactly (see merge_conversions), and drops operations that no
/// result needs, until none of these is left. Where excess precision is allowed, a value that is
/// carried in f32 is not taken for one of its own type. What a dropped operation would refuse when
/// bound, only the function as it was written refuses. Every result keeps every bit for every
/// input, signalling NaNs and boolean bytes 2 to 255 included. Parameters, results, their declared
/// types and their order stay; so do the names and text positions of the operations that survive.
/// Returns the same pointer when nothing changes. Throws std::length_error where the definitions of
/// compositions exceed the limits of the IR. Thread safe. Source: jit/README.md, Lowering;
/// ir/README.md, Numerics.
FunctionPtr canonicalize(const FunctionPtr& function);

/// Why a canonical function cannot be compiled, whatever the tier; empty where it can.
CASTOR_API std::string reason_interpreted(const Function& canonical);

}  // namespace castor
