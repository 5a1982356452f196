// SPDX-License-Identifier: Apache-2.0
// The time of the first runtime of a process, which only a new process can take.
#pragma once

#include <string_view>

namespace castor::bench {

/// castor-bench with this argument alone prints the nanoseconds that its first runtime takes.
inline constexpr std::string_view first_runtime_option = "--castor_first_runtime";

/// Prints them; the exit status.
int print_first_runtime();

}  // namespace castor::bench
