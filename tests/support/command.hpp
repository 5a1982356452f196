// SPDX-License-Identifier: Apache-2.0
// Running another program and keeping what it prints.
#pragma once

#include <string>
#include <vector>

namespace castor::test {

/// What a program left behind.
struct CommandResult {
  int status = -1;  ///< exit status; 128 + signal where one ended it
  std::string out;  ///< standard output
  std::string err;  ///< standard error
};

/// A folder of its own under the system's temporary one; removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// The path of a file in the folder.
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Runs a program with these arguments (no shell reads them) and waits for its end.
CommandResult run_command(const std::vector<std::string>& arguments);

/// The whole content of a file; empty where it cannot be read.
std::string read_text(const std::string& path);

void write_text(const std::string& path, const std::string& text);

}  // namespace castor::test
