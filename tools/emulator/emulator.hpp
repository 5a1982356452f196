// SPDX-License-Identifier: Apache-2.0
// Carries out instructions that the CPU lacks, so that tests run kernels of tiers above it.
//
// One by one: such an instruction raises SIGILL; the handler decodes it, computes its result from
// the registers in the signal's frame, puts it there and goes on after it. Where the CPU lacks the
// registers too, a signal's frame cannot hold them, and functions are carried out from entry
// to return (function.hpp). Either way what is done is what the table of instructions says
// (tools/machine). A few microseconds an instruction.
#pragma once

#include <cstdint>

#include "jit/target.hpp"

namespace castor::emulator {

/// Makes the features of `emulated()` that the host lacks, or whose instructions it is to leave
/// alone, count as its own (jit::emulate), and installs the handlers: instructions are carried out
/// one by one. Call it in main, before threads and before anything asks for the host. Returns those
/// features: none where the host has them, or lacks the AVX-512 that they build on.
///
/// Only tiles raise SIGILL where they are left alone, in a process that has no leave to use them,
/// and the instructions that configure them do not.
jit::FeatureSet install(jit::FeatureSet left_alone = {});

/// The same with all features above AVX2, FMA, F16C and BMI2. Runtimes of tiers that lack more than
/// `emulated()` get functions carried out as a whole; code that is published otherwise does not.
jit::FeatureSet install_with_functions(jit::FeatureSet left_alone = {});

/// The features whose instructions can be carried out one by one: AVX512-FP16, as far as castor
/// emits it, and AMX-TILE with AMX-INT8 (tiles.hpp).
jit::FeatureSet emulated();

/// Installs the handler of calls alone: what is mapped by `without_execution` can be called from
/// now on, whatever the CPU has.
void install_calls();

/// What tiers ask for and this one does not.
jit::FeatureSet features_above(jit::Tier tier);

/// Instructions carried out one by one so far, by all threads.
uint64_t instruction_count();
/// Functions carried out so far, by all threads.
uint64_t function_count();

}  // namespace castor::emulator
