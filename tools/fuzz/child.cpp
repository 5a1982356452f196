// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/child.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>

#include "jit/target.hpp"

namespace castor::fuzz {

namespace {

/// Crashes are findings: they end the child at once, without a core file or a handler's message. An
/// emulator's handler stays: it ends the child itself at instructions that it does not know.
void let_crashes_be_quiet() {
  const rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGALRM}) {
    const bool is_emulated =
        (signal == SIGILL || signal == SIGSEGV) && jit::host().emulated != jit::FeatureSet{};
    if (!is_emulated) std::signal(signal, SIG_DFL);
  }
}

int work_or_fail(const std::function<int()>& work) {
  try {
    return work();
  } catch (const std::exception&) {
    return -1;
  }
}

}  // namespace

Result<ChildEnd> run_in_child(const std::function<int()>& work, unsigned seconds) {
  const pid_t child = ::fork();
  if (child < 0) {
    return Error{ErrorCode::out_of_memory,
                 fmt::format("cannot start a process: {}", std::strerror(errno))};
  }
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    let_crashes_be_quiet();
    keep_alive(seconds);
    ::_exit(work_or_fail(work));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno == EINTR) continue;
    return Error{ErrorCode::internal,
                 fmt::format("cannot wait for a process: {}", std::strerror(errno))};
  }
  if (WIFSIGNALED(status)) return ChildEnd{0, WTERMSIG(status)};
  const int returned = WEXITSTATUS(status);
  return ChildEnd{returned == 255 ? -1 : returned, 0};
}

std::string text_of_child(const std::function<std::string()>& write, unsigned seconds) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  if (file == nullptr) return "(no temporary file)\n";
  const Result<ChildEnd> end = run_in_child(
      [&] {
        const std::string text = write();
        const bool is_written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
        return is_written && std::fflush(file.get()) == 0 ? 0 : 1;
      },
      seconds);
  if (!end) return fmt::format("({})\n", end.error().message);
  if (end->signal != 0) return fmt::format("(ended by {})\n", name_of_signal(end->signal));
  if (end->status != 0) return "(failed)\n";
  std::rewind(file.get());
  std::string text;
  for (int next = std::fgetc(file.get()); next != EOF; next = std::fgetc(file.get())) {
    text += static_cast<char>(next);
  }
  return text;
}

void keep_alive(unsigned seconds) { ::alarm(seconds); }

const char* name_of_signal(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV (touched memory that is not the tensors')";
    case SIGALRM: return "SIGALRM (took too long)";
    case SIGBUS: return "SIGBUS";
    case SIGILL: return "SIGILL";
    case SIGFPE: return "SIGFPE";
    case SIGTRAP: return "SIGTRAP";
    case SIGABRT: return "SIGABRT (stderr says why)";
    default: return "a signal";
  }
}

}  // namespace castor::fuzz
