// SPDX-License-Identifier: Apache-2.0
// Functions carried out from their entry to their return, on a machine of numbers that has the
// memory of the process (tools/machine): for code with registers that the CPU lacks, which no
// signal's frame could hold.
#pragma once

#include "ir/support/result.hpp"
#include "jit/memory/system_memory.hpp"
#include "tools/emulator/signal_frame.hpp"

namespace castor::emulator {

/// `system` with the real mmap and mprotect, but that what they map cannot be executed, so that
/// each call of a function there raises SIGSEGV.
jit::SystemCalls without_execution(const jit::SystemCalls& system);

/// Whether such memory was to be executed.
bool is_code(const void* at);

/// Carries out the function that was called in the frame, whose first instruction is next, and
/// returns from it. It has a stack of its own. Fails, naming the instruction, where that has no
/// meaning, or where the function does not give back what it has to keep for its caller. Memory
/// that is not there raises SIGSEGV, as it would without an emulator.
Status carry_out_function(SignalFrame& frame);

}  // namespace castor::emulator
