// SPDX-License-Identifier: Apache-2.0
#include "tests/support/command.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace castor::test {

namespace {

/// Where the child's standard output and error go.
class Redirection {
 public:
  Redirection(const std::string& out, const std::string& err) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    add(STDOUT_FILENO, out);
    add(STDERR_FILENO, err);
  }
  ~Redirection() { posix_spawn_file_actions_destroy(&actions_); }
  Redirection(const Redirection&) = delete;
  Redirection& operator=(const Redirection&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  void add(int descriptor, const std::string& path) {
    posix_spawn_file_actions_addopen(&actions_, descriptor, path.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
  }
  posix_spawn_file_actions_t actions_;
};

int wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& arguments) {
  const TemporaryFolder folder;
  const Redirection redirection(folder.path("out"), folder.path("err"));
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawn(&child, argv[0], redirection.get(), nullptr, argv.data(), environ) != 0) {
    return {-1, "", "cannot start " + arguments[0]};
  }
  const int status = wait_for(child);
  return {status, read_text(folder.path("out")), read_text(folder.path("err"))};
}

}  // namespace castor::test
