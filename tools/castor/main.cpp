// SPDX-License-Identifier: Apache-2.0
// The castor command: reads the command line, runs one subcommand, gives its exit status.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>

#include "castor/castor.hpp"
#include "tools/castor/command.hpp"

namespace castor::tools {
namespace {

/// "castor" or "castor run", as messages begin.
std::string command_name(const CLI::App& app) {
  const auto used = app.get_subcommands();
  return used.empty() ? "castor" : fmt::format("castor {}", used.front()->get_name());
}

/// Prints one line and gives the exit status, which tells of the failure also where standard error
/// takes nothing.
int report(const std::string& command, Failure failure) {
  std::replace(failure.message.begin(), failure.message.end(), '\n', ' ');
  std::fflush(stdout);
  print_error(fmt::format("{}: {}\n", command, failure.message));
  return static_cast<int>(failure.status);
}

/// The end of a command that succeeded, unless its output did not arrive.
int finish(const std::string& command) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
  return report(command, {ExitStatus::failure, "cannot write to standard output"});
}

/// Prints what --help or --version asks for.
int print_help(const CLI::App& app, const CLI::Success& asked) {
  std::ostringstream text;
  app.exit(asked, text, text);
  std::fputs(text.str().c_str(), stdout);
  return finish(command_name(app));
}

Outcome perform(const Action& action) {
  try {
    return action();
  } catch (const std::bad_alloc&) {
    return Failure{ExitStatus::failure, "out of memory"};
  } catch (const std::exception& error) {
    return Failure{ExitStatus::failure, error.what()};
  }
}

int run(int argc, char** argv) {
  CLI::App app("castor compiles small tensor functions to machine code and checks them.", "castor");
  app.set_version_flag("--version", std::string(version()));
  app.require_subcommand(0, 1);
  app.failure_message(CLI::FailureMessage::simple);
  Action action;
  add_info(app, action);
  add_run(app, action);
  add_convert(app, action);
  add_dump(app, action);
  add_check(app, action);
  add_fuzz(app, action);
  add_prove(app, action);
  add_onnx(app, action);
  add_manual(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return print_help(app, help);
  } catch (const CLI::ParseError& error) {
    const std::string command = command_name(app);
    return report(command, wrong_use(fmt::format("{} (see {} --help)", error.what(), command)));
  }
  if (!action) {
    return report(
        "castor",
        wrong_use("a subcommand is required: info, run, convert, dump, check, fuzz, onnx, manual "
                  "or completion (see castor --help)"));
  }
  if (const Outcome outcome = perform(action)) return report(command_name(app), *outcome);
  return finish(command_name(app));
}

/// Gives each standard stream that is closed a descriptor that refuses its use, as the closed one
/// did; else a file that the command opens would get its number, and messages with it.
void hold_standard_streams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    (void)::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // the lowest free one
  }
}

}  // namespace
}  // namespace castor::tools

int main(int argc, char** argv) {
  using namespace castor::tools;
  try {
    hold_standard_streams();
    return run(argc, argv);
  } catch (...) {  // no memory for the command line or a message
    return static_cast<int>(ExitStatus::failure);
  }
}
