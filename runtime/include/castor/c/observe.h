// SPDX-License-Identifier: Apache-2.0
// What a runtime of castor's C API tells the outside about its code: profilers, debuggers, people,
// a log. Include castor/castor.h.
//
// All of it happens where code is made: finding code in the cache and running it cost the same with
// and without, and where no option is set, so does making code.
//
// Code has names such as `castor_convert_f32_i8_contiguous_avx512`: what it computes, the element
// types of what it reads and writes, their access patterns, the tier. They are C identifiers of at
// most 120 characters, the same in every process; where the words do not tell pieces of code apart,
// a hash of what it was specialised for follows them.
#pragma once

#include "castor/c/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What a message is about, from the least to the most important.
typedef int32_t castor_log_level;
enum {
  CASTOR_LOG_BY_DEFAULT = 0,  ///< as an option: CASTOR_LOG_INFO
  CASTOR_LOG_DEBUG = 1,       ///< each piece of code: made, given back
  CASTOR_LOG_INFO = 2,  ///< each function compiled, with the time that it took, observing included
  CASTOR_LOG_WARNING = 3,  ///< functions that the interpreter executes; requests that were refused
  CASTOR_LOG_ERROR = 4     ///< files that could not be written
};
/// "debug", "info", "warning", "error"; NULL for any other number. Lives for ever.
CASTOR_API const char* castor_log_level_name(castor_log_level level) CASTOR_NOEXCEPT;

/// Writes listings of code into files: castor_listing_writer of castor/listing.h gives one.
typedef struct castor_disassembler castor_disassembler;

/// What is told, and to whom. Each option stands for itself; any may be combined. A field of zeros
/// is its default: nothing. The library reads no environment variables for these.
///
/// Files are written as code is made, and complete at each moment. What goes wrong with them later
/// (a full disk) fails no compile: it is logged, and castor_runtime_observation tells the first of
/// it. Their directories are made where only their last part is missing. After a fork the child
/// writes files of its own, named by its own process id, of the code that it makes itself.
///
/// The structure and its texts are copied. `log` and what `log_context` points to must live as long
/// as the runtime and all its kernels and bound kernels.
typedef struct castor_observe_options {
  size_t struct_size;  ///< sizeof(castor_observe_options)
  /// Not 0: appends a line for each piece of code to perf-PID.map in `perf_map_directory`; perf
  /// reads it in /tmp. Each piece of code then has pages of its own (at least 4 KiB).
  int32_t perf_map;
  /// Not 0: registers code with GDB (its JIT interface), so that it shows names and disassembles,
  /// and takes breakpoints by name; unregisters it when the code dies. Each piece of code then has
  /// pages of its own.
  int32_t gdb;
  const char* perf_map_directory;  ///< NULL or "": "/tmp"
  /// Not NULL or "": writes jit-PID.dump there, in the jitdump format of Linux, with the code
  /// itself, so that perf annotate shows it. Runtimes of one process share the file.
  const char* jitdump_directory;
  /// Not NULL or "": writes files there, named by function and by code: each function's text, nests
  /// and lanes, and each piece of code's nest and listing (without `listing`: its bytes). No file
  /// is overwritten: where another one has the name, a hash of the content is appended.
  const char* dump_directory;
  const castor_disassembler* listing;  ///< NULL: no listings
  /// Not NULL: takes messages from `log_level` on. A message is a line without its end, of `length`
  /// bytes and a zero after them, which lives until the callback returns. Called from whichever
  /// thread did what it tells of, also from several at a time, with no lock of castor held. Must
  /// not compile, bind or convert, nor wait for a thread that does: others may be waiting for the
  /// code that is being made meanwhile. Bound kernels may be run.
  void (*log)(void* context, castor_log_level level, const char* message, size_t length);
  void* log_context;  ///< handed to log as it is
  castor_log_level log_level;
  /// Not 0: registers the code's unwind records with libgcc, so that this process's own unwinding
  /// (backtrace(), a crash handler) sees the callers of code. CASTOR_UNSUPPORTED with LLVM's
  /// libunwind.
  int32_t unwind;
} castor_observe_options;
#define CASTOR_OBSERVE_OPTIONS                                                \
  {                                                                           \
    sizeof(castor_observe_options), 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, \
        CASTOR_LOG_BY_DEFAULT, 0                                              \
  }

#ifdef __cplusplus
}  // extern "C"
#endif
