// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/observer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "ir/support/guarded.hpp"
#include "runtime/observe/gdb_jit.hpp"
#include "runtime/observe/unwind_records.hpp"
#include "runtime/observe/unwind_registration.hpp"

namespace castor {

namespace {

std::span<const std::byte> bytes_of(const jit::CodeBlock& block) {
  return {block.code(), block.code_size()};
}

/// What ends together with a piece of code.
class CodeWatch {
 public:
  CodeWatch(std::shared_ptr<const Observer> observer, std::string name,
            std::span<const std::byte> code)
      : observer_(std::move(observer)), name_(std::move(name)), bytes_(code.size()) {}
  /// Tells a debugger, and the unwinder of exceptions.
  void tell_debugger(std::span<const std::byte> code, std::span<const jit::FrameChange> frame) {
    in_debugger_.emplace(name_, code, frame);
  }
  void tell_unwinder(std::span<const std::byte> code, std::span<const jit::FrameChange> frame) {
    in_unwinder_.emplace(frame, code);
  }
  ~CodeWatch() {
    if (!observer_->logs(LogLevel::debug)) return;
    try {
      observer_->log(LogLevel::debug, fmt::format("{}: {} bytes of code are gone", name_, bytes_));
    } catch (...) {  // std::bad_alloc: a message less
    }
  }
  CodeWatch(const CodeWatch&) = delete;
  CodeWatch& operator=(const CodeWatch&) = delete;

 private:
  std::shared_ptr<const Observer> observer_;
  std::string name_;
  size_t bytes_;
  std::optional<GdbRegistration> in_debugger_;
  std::optional<UnwindRegistration> in_unwinder_;
};

}  // namespace

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return "debug";
    case LogLevel::info: return "info";
    case LogLevel::warning: return "warning";
    case LogLevel::error: return "error";
  }
  return "unknown";
}

jit::SystemCalls system_calls_for(const ObserveOptions& options, const jit::SystemCalls& system) {
  jit::SystemCalls calls = system;
  if (!options.perf_map && !options.gdb) return calls;
  calls.memfd_create = [](const char*, unsigned) {
    errno = ENOSYS;
    return -1;
  };
  return calls;
}

Result<std::shared_ptr<Observer>> Observer::create(const ObserveOptions& options,
                                                   const jit::SystemCalls& system) {
  const bool is_wanted = options.perf_map || !options.jitdump_directory.empty() || options.gdb ||
                         options.unwind || !options.dump_directory.empty() ||
                         options.log != nullptr;
  if (!is_wanted) return std::shared_ptr<Observer>();
  if (options.unwind) {
    if (Status status = check_unwinder(); !status) return status.error();
  }
  if (!options.dump_directory.empty()) {
    if (Status status = prepare_directory(options.dump_directory); !status) return status.error();
  }
  auto observer = std::make_shared<Observer>(options, system);
  if (Status status = observer->open(observer->files_.get()); !status) return status.error();
  return observer;
}

Observer::Observer(const ObserveOptions& options, const jit::SystemCalls& system)
    : options_(options),
      dump_(options.dump_directory.empty() ? std::nullopt
                                           : std::optional<DumpDirectory>(options.dump_directory)),
      files_(system) {}

Observer::~Observer() {
  try {
    Files& files = files_.get();
    if (files.jitdump && files.process == ::getpid()) check(files.jitdump->close());
  } catch (...) {  // std::bad_alloc: the closing record may be missing
  }
}

void Observer::log(LogLevel level, const std::string& message) const noexcept {
  try {
    options_.log(options_.log_context, level, message);
  } catch (...) {  // it must not: the message is lost
  }
}

/// Opens this process's files, where they are not open.
Status Observer::open(Files& files) const {
  if (files.process == ::getpid()) return {};
  files.perf_map.reset();
  files.jitdump.reset();
  files.process = ::getpid();
  if (options_.perf_map) {
    Result<PerfMap> opened = PerfMap::open(options_.perf_map_directory);
    if (!opened.ok()) return opened.error();
    files.perf_map = std::move(opened).value();
  }
  if (!options_.jitdump_directory.empty()) {
    Result<Jitdump> opened = Jitdump::open(options_.jitdump_directory);
    if (!opened.ok()) return opened.error();
    files.jitdump = std::move(opened).value();
  }
  return {};
}

uint32_t Observer::room_after(const jit::MachineCode& code) const {
  if (options_.jitdump_directory.empty()) return 0;
  return static_cast<uint32_t>(unwinding_bytes_after(code.frame, code.instruction_bytes));
}

Status Observer::add_to_files(std::string_view name, std::span<const std::byte> code,
                              std::span<const jit::FrameChange> frame) const {
  if (!options_.perf_map && options_.jitdump_directory.empty()) return {};
  Files& files = files_.get();
  const std::lock_guard lock(files.mutex);
  if (Status opened = open(files); !opened) return opened;
  Status mapped = files.perf_map ? files.perf_map->add(name, code) : Status();
  Status dumped = files.jitdump ? files.jitdump->add(name, code, frame) : Status();
  return mapped ? std::move(dumped) : std::move(mapped);
}

/// Keeps the first failure, and logs all.
void Observer::check(const Status& status) const {
  if (status) return;
  {
    Files& files = files_.get();
    const std::lock_guard lock(files.mutex);
    if (!files.failure) files.failure = status.error();
  }
  if (logs(LogLevel::error)) log(LogLevel::error, status.error().message);
}

std::optional<Error> Observer::failure() const {
  Files& files = files_.get();
  const std::lock_guard lock(files.mutex);
  return files.failure;
}

std::shared_ptr<const void> Observer::code_made(const CodeDescription& description,
                                                std::string_view key, const jit::MachineCode& code,
                                                const jit::CodeBlock& block) noexcept {
  try {
    return report(description, key, code, block);
  } catch (...) {
    try {
      check(error_of_exception());
    } catch (...) {  // std::bad_alloc: nor memory to say so
    }
    return nullptr;
  }
}

std::shared_ptr<const void> Observer::report(const CodeDescription& description,
                                             std::string_view key, const jit::MachineCode& code,
                                             const jit::CodeBlock& block) {
  std::string name = description.name(key);
  check(add_to_files(name, bytes_of(block), code.frame));
  if (dump_) check(dump_->write(name, description, code, options_.listing));
  const bool tells = logs(LogLevel::debug);
  if (tells) {
    log(LogLevel::debug, fmt::format("{}: {} bytes of code at {}", name, block.code_size(),
                                     static_cast<const void*>(block.code())));
  }
  if (!tells && !options_.gdb && !options_.unwind) return nullptr;
  auto watch = std::make_shared<CodeWatch>(shared_from_this(), std::move(name), bytes_of(block));
  if (options_.gdb) watch->tell_debugger(bytes_of(block), code.frame);
  if (options_.unwind) watch->tell_unwinder(bytes_of(block), code.frame);
  return watch;
}

}  // namespace castor
