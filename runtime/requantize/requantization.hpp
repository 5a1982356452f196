// SPDX-License-Identifier: Apache-2.0
// Binding and running of requantizations: by methods (jit/requantize), or by a table of bytes for
// each slice.
#pragma once

#include "ir/support/result.hpp"
#include "jit/requantize/plan.hpp"
#include "runtime/bind/steps.hpp"

namespace castor::detail {

struct CallMemory;
struct Compiled;
class ScratchPlan;

/// The step of a requantization. `base` has its operands: x, parameters given at run time, y. May
/// generate code, and computes constants of slices where the types have all parameters. Throws
/// std::bad_alloc.
Result<Step> bind_requantization(const jit::RequantizeForm& form, const BoundSide& from,
                                 const BoundSide& to, const jit::RequantizedTensors& tensors,
                                 const Compiled& compiled, ScratchPlan& scratch, StepBase base);

/// Computes the constants of slices of one call: the method's step to run for it, which reads them
/// from the call's scratch.
const ElementwiseStep& prepare_method(const RequantizeStep& step, const CallMemory& memory);

/// The tables of all slices, which a call makes in its scratch where the types do not have all
/// parameters.
const std::byte* ready_tables(const TableStep& step, const CallMemory& memory);

/// Looks bytes up run by run.
void run_byte_tables(const TableStep& step, const CallMemory& memory);

}  // namespace castor::detail
