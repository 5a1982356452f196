// SPDX-License-Identifier: Apache-2.0
// What stands between a runtime and those who watch it: files, debuggers, a log.
#pragma once

#include <castor/observe.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "runtime/fork_private.hpp"
#include "runtime/observe/code_watcher.hpp"
#include "runtime/observe/dump_directory.hpp"
#include "runtime/observe/jitdump.hpp"
#include "runtime/observe/perf_map.hpp"

namespace castor {

namespace detail {
struct Compiled;
}

/// Thread safe. Shared by a runtime, its kernels and, where they tell of their end, pieces of code.
class Observer final : public CodeWatcher, public std::enable_shared_from_this<Observer> {
 public:
  /// Null where no option is set. Fails (io) where a directory or a file cannot be written.
  static Result<std::shared_ptr<Observer>> create(const ObserveOptions& options,
                                                  const jit::SystemCalls& system);
  Observer(const ObserveOptions& options, const jit::SystemCalls& system);
  ~Observer() override;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  /// Room for a profiler's unwind records, where a jitdump file is written.
  uint32_t room_after(const jit::MachineCode& code) const override;
  /// Reports the code. Never fails: what goes wrong is logged, and `failure` tells it.
  std::shared_ptr<const void> code_made(const CodeDescription& description, std::string_view key,
                                        const jit::MachineCode& code,
                                        const jit::CodeBlock& block) noexcept override;
  /// Reports a function that was compiled, in that time.
  void compiled(const Function& function, const detail::Compiled& compiled,
                std::chrono::nanoseconds time) noexcept;
  /// Reports a request that fails: `what` names it, "compile @f".
  void refused(std::string_view what, const Error& error) const noexcept;

  bool logs(LogLevel level) const { return options_.log != nullptr && level >= options_.log_level; }
  /// Writes the message where `logs(level)`.
  void log(LogLevel level, const std::string& message) const noexcept;

  /// The first thing that could not be written.
  std::optional<Error> failure() const;

 private:
  /// The files of one process.
  struct Files {
    std::mutex mutex;
    std::optional<int> process;  ///< whose files are open
    std::optional<PerfMap> perf_map;
    std::optional<Jitdump> jitdump;
    std::optional<Error> failure;  ///< the first
  };

  Status open(Files& files) const;
  Status add_to_files(std::string_view name, std::span<const std::byte> code,
                      std::span<const jit::FrameChange> frame) const;
  void check(const Status& status) const;
  std::shared_ptr<const void> report(const CodeDescription& description, std::string_view key,
                                     const jit::MachineCode& code, const jit::CodeBlock& block);

  const ObserveOptions options_;
  const std::optional<DumpDirectory> dump_;
  mutable ForkPrivate<Files> files_;
};

/// Measures a compilation for an observer, which may be null: then it does nothing.
class CompileWatch {
 public:
  CompileWatch(Observer* observer, const Function& function);
  /// Tells how it ended.
  void done(const Result<std::shared_ptr<const detail::Compiled>>& compiled) const;

 private:
  Observer* observer_;
  const Function& function_;
  std::chrono::steady_clock::time_point begin_;
};

/// The system calls that make code memory which these options want: without memfds. perf looks
/// names of its map up for memory that no file backs, and GDB cannot put breakpoints into
/// mappings that cannot be made writable. Code memory then falls back to private pages for each
/// piece of code.
jit::SystemCalls system_calls_for(const ObserveOptions& options, const jit::SystemCalls& system);

}  // namespace castor
