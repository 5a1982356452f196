// SPDX-License-Identifier: Apache-2.0
// Work in a forked child, which may crash or hang.
#pragma once

#include <functional>
#include <string>

#include "ir/support/result.hpp"

namespace castor::fuzz {

/// How a child ended: by itself, or by a signal (SIGALRM after the time that it had).
struct ChildEnd {
  int status = 0;  ///< what the work returned; -1 where it threw
  int signal = 0;
};

/// Runs `work` in a child, which is killed after `seconds` without `keep_alive` (0: never). Fails
/// where no child can be had. Nothing that the parent has buffered is written twice.
Result<ChildEnd> run_in_child(const std::function<int()>& work, unsigned seconds);

/// The text that `write` gives in a child, of which `seconds` are the limit; where it does not end
/// by itself, one line that says how it ended.
std::string text_of_child(const std::function<std::string()>& write, unsigned seconds);

/// Restarts the time limit of the calling child.
void keep_alive(unsigned seconds);

/// "SIGSEGV", "SIGALRM (it took too long)".
const char* name_of_signal(int signal);

}  // namespace castor::fuzz
