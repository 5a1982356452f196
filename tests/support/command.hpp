// SPDX-License-Identifier: Apache-2.0
// Running another program and keeping what it prints.
#pragma once

#include <string>
#include <vector>

#include "tests/support/files.hpp"

namespace castor::test {

/// The output and exit status of a program.
struct CommandResult {
  int status = -1;  ///< exit status; 128 + signal where one ended it
  std::string out;  ///< standard output
  std::string err;  ///< standard error
};

/// Runs a program with these arguments (no shell reads them) and waits for its end.
CommandResult run_command(const std::vector<std::string>& arguments);

}  // namespace castor::test
