// SPDX-License-Identifier: Apache-2.0
// For tests on machines that lack a feature, or are to do without it.
#pragma once

#include <cstdint>

#include "jit/memory/system_memory.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// Linux's arch_prctl: -1 with errno, or 0.
using ArchPrctl = int64_t (*)(int request, uint64_t argument);

/// What a signal handler of the program carries out in place of the CPU (tools/emulator).
struct Emulation {
  FeatureSet features;     ///< whose instructions it carries out where the CPU lacks them
  FeatureSet not_of_host;  ///< those that the CPU is not to carry out in any case
  ArchPrctl arch_prctl;    ///< what Linux would say about tile data, where tiles are emulated
  /// Those whose instructions raise SIGILL one by one. Where a tier lacks others, the functions of
  /// a runtime of that tier are carried out as a whole.
  FeatureSet one_by_one = {};
  /// The calls that map the code of such a runtime, given the ordinary ones: calls of a function
  /// then raise SIGSEGV. Null: no function is carried out as a whole.
  SystemCalls (*calls_for_functions)(const SystemCalls& system) = nullptr;
};

/// The features that the host lacks count as its own. Tiers with them run where they are asked for,
/// and are never the best one. To be called before the first `host()`, and once; false where the
/// host has answered otherwise. `emulation` lives as long as the process.
CASTOR_API bool emulate(const Emulation& emulation);

/// What answers in place of Linux; null: Linux does.
ArchPrctl emulated_arch_prctl();

/// The calls that map a runtime's code for that tier.
SystemCalls system_calls_for(Tier tier, const SystemCalls& system);

}  // namespace castor::jit
