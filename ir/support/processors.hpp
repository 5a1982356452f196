// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <algorithm>
#include <thread>

namespace castor {

/// The processors that this process may run on, at least 1: what its affinity leaves of the
/// machine's. Where that cannot be asked, as on machines of more than 1,024, it is the machine's.
inline int processors_of_process() {
  cpu_set_t allowed;
  const bool is_known = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  const int count =
      is_known ? CPU_COUNT(&allowed) : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(count, 1);
}

}  // namespace castor
