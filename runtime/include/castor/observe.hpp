// SPDX-License-Identifier: Apache-2.0
// What a runtime tells the outside about its code: profilers, debuggers, people, a log.
//
//   castor::RuntimeOptions options;
//   options.observe.perf_map = true;               // perf report shows kernels by name
//   options.observe.dump_directory = "kernels";    // IR, nests and listings as files
//   options.observe.listing = castor::listing_writer();  // castor/listing.hpp, castor::listing
//
// All of it happens where code is made: finding code in the cache and running it cost the same with
// and without, and where no option is set, so does making code.
//
// Code has names such as `castor_convert_f32_i8_contiguous_avx512`: what it computes, the element
// types of what it reads and writes, their access patterns, the tier. They are C identifiers of at
// most 120 characters, the same in every process; where the words do not tell pieces of code apart
// (fused operations, constants in the code), a hash of what it was specialised for follows them.
// Code that several functions share has the name that the first of them gave it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ir/support/export.hpp"
#include "ir/support/result.hpp"

namespace castor {

namespace jit {
struct MachineCode;
}

/// Machine code as text. Null where a program links no disassembler: see castor/listing.hpp. What
/// it throws is written instead of the listing.
using ListingWriter = Result<std::string> (*)(const jit::MachineCode& code);

/// What a message is about, from the least to the most important.
enum class LogLevel : uint8_t {
  debug,    ///< each piece of code: made, given back
  info,     ///< each function compiled, with the time that it took, observing included
  warning,  ///< functions that the interpreter executes, and why; requests that were refused
  error,    ///< files that could not be written
};
/// "debug", "info", "warning", "error".
CASTOR_API std::string_view name_of(LogLevel level);

/// Takes one message: a line without its end, and a zero after its last character. Called from
/// whichever thread did what it tells of, also from several at a time, with no lock of castor held.
/// Should not throw: the message is lost. Must not compile, bind or convert, nor wait for a thread
/// that does: others may be waiting for the code that is being made meanwhile. Bound kernels may be
/// run.
using LogFunction = void (*)(void* context, LogLevel level, std::string_view message);

/// Each option stands for itself; any may be combined. The library reads no environment variables
/// for these: what a program writes is its own decision.
///
/// Files are written as code is made, and complete at each moment. What goes wrong with them later
/// (a full disk) fails no compile: it is logged, and Runtime::observation tells the first of it.
/// Their directories are made where only their last part is missing. After a fork the child writes
/// files of its own, named by its own process id, of the code that it makes itself.
struct ObserveOptions {
  /// Appends a line for each piece of code to perf-PID.map in `perf_map_directory`; perf reads it
  /// in /tmp. Such a file cannot say that code is gone: where its memory is used again, the newest
  /// line counts. Since perf looks there only for code in memory that no file backs, each
  /// piece of code then has pages of its own (at least 4 KiB) instead of a part of an arena.
  bool perf_map = false;
  std::string perf_map_directory = "/tmp";
  /// Not empty: writes jit-PID.dump there, in the jitdump format of Linux, with the code itself, so
  /// that perf annotate shows it, and unwind records, with which perf record --call-graph dwarf
  /// sees its callers. Runtimes of one process share the file:
  ///   perf record -k mono program; perf inject --jit -i perf.data -o jitted.data;
  ///   perf annotate -i jitted.data
  std::string jitdump_directory{};
  /// Registers code with GDB (its JIT interface), so that it shows names and disassembles, and
  /// takes breakpoints by name, pending ones too; unregisters it when the code dies. Each piece of
  /// code then has pages of its own, as for `perf_map`, since GDB cannot write breakpoints to
  /// arenas. Backtraces go on to the caller from every instruction.
  bool gdb = false;
  /// Registers the code's unwind records with libgcc, so that this process's own unwinding sees the
  /// callers of code: backtrace(), _Unwind_Backtrace in a crash handler. Takes a few microseconds
  /// for each piece of code. While any code is registered, libgcc before version 13 takes a lock
  /// for each frame of every exception. Fails (unsupported) with LLVM's libunwind.
  bool unwind = false;
  /// Not empty: writes files there, named by function and by code. For each function its text
  /// (`NAME.castor`, which the castor command runs; large constants in .bin files beside it) and
  /// its nests and lanes (`NAME.nests.txt`); for each piece of code its nest, or the kernel's form
  /// (`NAME.nest.txt`), and its listing (`NAME.asm.txt`), or without `listing` the bytes
  /// (`NAME.bin`). No file is overwritten: where another one has the name, a hash of the content is
  /// appended.
  std::string dump_directory{};
  ListingWriter listing = nullptr;
  /// Not null: takes messages from `log_level` on. `log_context` must live as long as the runtime
  /// and all its kernels.
  LogFunction log = nullptr;
  void* log_context = nullptr;
  LogLevel log_level = LogLevel::info;
  /// Held by the runtime and its kernels until `log` is called no more: what `log_context` points
  /// to, where nobody else keeps it.
  std::shared_ptr<void> log_owner = nullptr;
};

}  // namespace castor
