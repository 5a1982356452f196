// SPDX-License-Identifier: Apache-2.0
// The library castor::threads without oneTBB.
#include "castor/thread_pool.hpp"
#include "ir/support/guarded.hpp"

namespace castor {

bool has_thread_pool() { return false; }

Result<std::shared_ptr<Executor>> make_thread_pool(int) {
  return guarded([]() -> Result<std::shared_ptr<Executor>> {
    return Error{ErrorCode::unsupported,
                 "castor was built without oneTBB (CASTOR_WITH_TBB), so it has no thread pool"};
  });
}

}  // namespace castor
