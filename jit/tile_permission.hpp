// SPDX-License-Identifier: Apache-2.0
// Leave to use tile data: Linux gives a process the larger state of AMX only when it asks.
//
// With it signal frames and switches between threads carry 8 KiB more, and alternate signal stacks
// must be that much larger. So castor asks when it first binds a kernel that uses tiles.
#pragma once

#include <string>

#include "ir/support/export.hpp"
#include "ir/support/result.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// Requests of arch_prctl about states that Linux saves on demand, and one of these states
/// (Documentation/arch/x86/xstate.rst; glibc has no wrapper).
namespace xstate {
inline constexpr int get_supported = 0x1021;
inline constexpr int get_permitted = 0x1022;
inline constexpr int request_permission = 0x1023;
inline constexpr int tile_data = 18;
}  // namespace xstate

/// Whether this process may use tile data, because it or its parent asked, or any library in it.
CASTOR_API bool may_use_tiles();

/// Asks Linux to let all threads of the process use tile registers, unless they may. It stays so,
/// for children of fork as well. Fails (unsupported) with what Linux says: an old kernel, a filter
/// of system calls, or a thread whose alternate signal stack is too small for the larger frames. A
/// refusal stays too: it is not asked again, so that nothing that a program does with its signal
/// stacks later changes what castor does with them. Threads may call it at once.
CASTOR_API Status permit_tiles();

/// A tier, or the next lower one that needs no permission.
struct PermittedTier {
  Tier tier = Tier::avx2;
  std::string lower_because;  ///< not empty: it is the lower one
};
/// What kernels with tiles can be made for where this tier is wanted; asks as above. A tier that
/// the host does not run is for another machine: nothing is asked.
CASTOR_API PermittedTier permitted_tier(Tier tier);

/// Why the host's best tier is lower than its CPU's instructions allow, in the words of
/// `PermittedTier::lower_because`: the operating system does not save tiles. Else empty.
CASTOR_API std::string best_tier_lower_because();

}  // namespace castor::jit
