// SPDX-License-Identifier: Apache-2.0
// The interpreter: the definition of what functions compute.
#pragma once

#include <span>

#include "ir/function.hpp"
#include "ir/support/export.hpp"
#include "ir/types/view.hpp"

namespace castor {

/// Computes `function` with plain scalar integer code, element by element (ir/README.md, Numerics):
/// slow, exact, independent of the machine and of MXCSR.
///
/// The views must have been checked (runtime/check_views): as many as the function has parameters
/// and results, of their element types and bound shapes, in bounds, no output overlapping itself,
/// another output or an input. Extents are taken from the inputs. Fails only for shapes that do
/// not bind or memory that is refused; then no output has been touched. Thread safe.
CASTOR_API Status interpret(const Function& function, std::span<const ConstView> inputs,
                            std::span<const View> outputs);

}  // namespace castor
