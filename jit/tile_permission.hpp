// SPDX-License-Identifier: Apache-2.0
// Leave to use tile data: Linux gives a process the larger state of AMX only when it asks.
#pragma once

#include <string>

#include "ir/support/export.hpp"
#include "ir/support/result.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// Asks Linux to let all threads of the process use tile registers; it stays so, for children of
/// fork as well. Fails (unsupported) with what Linux says: an old kernel, a filter of system calls,
/// or a thread whose alternate signal stack is too small for the larger frames. Threads may call it
/// at once.
CASTOR_API Status permit_tiles();

/// A tier, or the next lower one that needs no permission.
struct PermittedTier {
  Tier tier = Tier::avx2;
  std::string lower_because;  ///< not empty: it is the lower one
};
/// What kernels can be made for where this tier, which the host runs, is wanted. Asks for
/// permission as above, unless tiles are emulated.
CASTOR_API PermittedTier permitted_tier(Tier tier);

}  // namespace castor::jit
