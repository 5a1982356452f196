// SPDX-License-Identifier: Apache-2.0
// Forked children of a test: what they return, and a signal to them.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <stdexcept>

namespace castor::test {

/// Runs `body` in a forked child, which is killed when it takes longer than 60 seconds.
template <class Body>
pid_t start_child(Body body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::alarm(60);
  int failed = 99;
  try {
    failed = body();
  } catch (const std::exception&) {
  }
  ::_exit(failed);
}

/// The exit status of a child; -1 when a signal ended it.
inline int wait_for(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Runs `body` in a child and returns what it returned: the number of the check that failed, or 0.
template <class Body>
int in_child(Body body) {
  return wait_for(start_child(body));
}

/// A one-way signal between processes.
class Signal {
 public:
  Signal() {
    if (::pipe(ends_) != 0) throw std::runtime_error("pipe");
  }
  ~Signal() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  void send() { (void)!::write(ends_[1], "x", 1); }
  void wait() {
    char byte;
    (void)!::read(ends_[0], &byte, 1);
  }

 private:
  int ends_[2];
};

}  // namespace castor::test
