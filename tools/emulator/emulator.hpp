// SPDX-License-Identifier: Apache-2.0
// Carries out instructions that the CPU lacks, so that tests run kernels of tiers above it.
//
// Each such instruction raises SIGILL; the handler decodes it, computes its result from the
// registers in the signal's frame, puts it there and goes on after it. What it does is what the
// table of instructions says (tools/machine). A few microseconds an instruction.
#pragma once

#include <cstdint>

#include "jit/target.hpp"

namespace castor::emulator {

/// What the emulator does on a CPU that has tiles. Those of a process that has no leave to use them
/// raise SIGILL as well, but for the instructions that configure them.
enum class TilesOfCpu : uint8_t { used, left_alone };

/// Makes the features of `emulated()` that the host lacks, or whose instructions it is to leave
/// alone, count as its own (jit::emulate), and installs the handler. Call it in main, before
/// threads and before anything asks for the host. Returns those features: none where the host has
/// them, or lacks the AVX-512 that they build on.
jit::FeatureSet install(TilesOfCpu tiles = TilesOfCpu::used);

/// The features that the emulator stands in for: AVX512-FP16, as far as castor emits it, and
/// AMX-TILE with AMX-INT8 (tiles.hpp).
jit::FeatureSet emulated();

/// Instructions carried out so far, by all threads.
uint64_t instruction_count();

}  // namespace castor::emulator
