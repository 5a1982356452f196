// SPDX-License-Identifier: Apache-2.0
// Runtimes of castor's C API. Include castor/castor.h.
#pragma once

#include "castor/c/function.h"
#include "castor/c/kernel.h"
#include "castor/c/memory.h"
#include "castor/c/observe.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Compiles functions and owns the cache of kernels. Any thread may use it, several at a time.
/// Runtimes share nothing but the packed weights that they are given. A child process that inherits
/// one by fork() goes on with an empty cache of its own, even if other threads of the parent were
/// compiling; kernels that it inherits still run.
typedef struct castor_runtime castor_runtime;

/// Microarchitectures that code is planned for.
typedef int32_t castor_core;
enum {
  CASTOR_CORE_AUTOMATIC = 0,  ///< the one that the machine is known to have
  CASTOR_CORE_GENERIC = 1,
  CASTOR_CORE_ZEN4 = 2,
  CASTOR_CORE_ZEN5 = 3,
  CASTOR_CORE_GOLDEN_COVE = 4,  ///< and its successors in servers
  CASTOR_CORE_ZEN3 = 5
};

/// How a runtime is made. A field of zeros is its default.
typedef struct castor_runtime_options {
  size_t struct_size;  ///< sizeof(castor_runtime_options)
  /// Generate code for this tier instead of the best that the machine has (or that the environment
  /// variable CASTOR_ISA names).
  castor_tier tier;
  int32_t interpret;  ///< not 0: never generate code
  /// Bound of the cache, in bytes: half for machine code, half for the functions that it was made
  /// for, with all that they hold. What was added first is dropped first, unless it was used since;
  /// what is larger than its part is not kept at all. Kernels in use keep theirs, whatever is
  /// dropped. 0: 64 MiB; 1 keeps nothing.
  size_t cache_bytes;
  /// Maximum bytes of pages with machine code and its constants, whoever holds them: kernels,
  /// also those that outlive the runtime, and the cache, which takes at most half of it and is
  /// emptied where code finds no room. What finds none then runs in the interpreter, and
  /// castor_kernel_engine_reason or castor_bound_kernel_engine_reason names what is mapped and the
  /// limit. 0: no bound.
  size_t code_bytes_limit;
  /// The executor whose threads do large work of calls that name no executor themselves; NULL: the
  /// caller's thread does all. Must work as long as the runtime and its kernels live.
  const castor_executor* executor;
  /// For scratch, and for packed weights unless `packed_weights` is set; NULL: castor's own.
  const castor_allocator* allocator;
  /// The store where packed weights are looked up, and kept for other kernels that use them; NULL:
  /// the runtime makes its own.
  const castor_packed_weights* packed_weights;
  const castor_observe_options* observe;  ///< NULL: nothing is told
  const castor_compile_limits* limits;    ///< limits of what is compiled; NULL: the defaults
  /// Plan for this microarchitecture instead of the one that the machine is known to have (or that
  /// the environment variable CASTOR_CORE names). Results are the same.
  castor_core core;
  /// Not 0: keep rbp as the frame pointer in all code, for profilers that follow frame pointers.
  /// Results are the same.
  int32_t frame_pointers;
} castor_runtime_options;
#define CASTOR_RUNTIME_OPTIONS                                                                    \
  {                                                                                               \
    sizeof(castor_runtime_options), CASTOR_TIER_AUTOMATIC, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, \
        CASTOR_CORE_AUTOMATIC, 0                                                                  \
  }

/// Makes a runtime; `options` may be NULL. Fails where the tier that is asked for does not run on
/// this machine, where an allocator has one callback without the other, and (CASTOR_IO) where files
/// that `observe` asks for cannot be written. Where the machine has no AVX2, or executable memory
/// is refused, functions run in the interpreter, and castor_kernel_engine_reason says why, or,
/// where code is first needed when a kernel is bound, castor_bound_kernel_engine_reason. On success
/// *runtime is the caller's, else NULL.
CASTOR_API castor_status castor_runtime_create(const castor_runtime_options* options,
                                               castor_runtime** runtime,
                                               castor_error* error) CASTOR_NOEXCEPT;
/// Kernels survive their runtime.
CASTOR_API void castor_runtime_destroy(castor_runtime* runtime) CASTOR_NOEXCEPT;

/// The tier that code is generated for; CASTOR_TIER_NONE where everything is interpreted, and for
/// NULL.
CASTOR_API castor_tier castor_runtime_tier(const castor_runtime* runtime) CASTOR_NOEXCEPT;

/// The kernel of the function: from the cache, where a function that computes the same has one, or
/// compiled. Finding it takes no lock. While one thread compiles a function, others that ask for it
/// wait and get the same code. Failures are not kept. On success *kernel is the caller's, else
/// NULL.
CASTOR_API castor_status castor_runtime_compile(const castor_runtime* runtime,
                                                const castor_function* function,
                                                castor_kernel** kernel,
                                                castor_error* error) CASTOR_NOEXCEPT;
/// castor_function_parse with the runtime's limits, and castor_runtime_compile.
CASTOR_API castor_status castor_runtime_compile_text(const castor_runtime* runtime,
                                                     const char* text, size_t length,
                                                     const char* name, castor_kernel** kernel,
                                                     castor_error* error) CASTOR_NOEXCEPT;

/// Converts `source` to `destination` elementwise, with kernels from the runtime's cache: equal
/// shapes, any strides. `options` may be NULL. After a failure nothing was written.
CASTOR_API castor_status castor_convert(const castor_runtime* runtime, const castor_view* source,
                                        const castor_view* destination,
                                        const castor_convert_options* options,
                                        castor_error* error) CASTOR_NOEXCEPT;

/// Counters of one runtime, since it was made; in a forked child, since its first use there. Each
/// only grows, but for the bytes. Hits are exact while no other thread is in the runtime; a request
/// under way may count as one.
///
/// Compiling a function requests the machine code of its operations, and so may binding a kernel.
/// Requests that find another thread at work on the same thing wait for it and are misses.
typedef struct castor_statistics {
  size_t struct_size;      ///< set by the caller: sizeof(castor_statistics)
  uint64_t functions;      ///< functions compiled (a repeated function counts once)
  uint64_t function_hits;  ///< compile and convert calls that found their function
  /// Calls that did not: they compiled it, waited for another thread that did, or failed.
  uint64_t function_misses;
  uint64_t function_evictions;  ///< functions dropped to make room for others
  /// Nanoseconds spent compiling functions, in total over all threads, from verification to
  /// published code, failures included; so it holds code_compile_ns but for what binding generated.
  uint64_t function_compile_ns;
  /// What the cache's functions hold at present: operations, names, constants, plans, code (counted
  /// again for each), and bookkeeping.
  uint64_t function_bytes;
  uint64_t codes;            ///< pieces of machine code generated
  uint64_t code_hits;        ///< requests for machine code that found it
  uint64_t code_misses;      ///< requests that did not
  uint64_t code_evictions;   ///< codes dropped to make room for others
  uint64_t code_compile_ns;  ///< nanoseconds spent generating and publishing code, in total
  /// What the cache's codes count for at present: machine code, keys and bookkeeping.
  uint64_t code_bytes;
} castor_statistics;
#define CASTOR_STATISTICS \
  { sizeof(castor_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/// Fills in the fields that both sides know, and sets those that only newer headers have to 0.
/// Takes the caches' locks for a moment.
CASTOR_API castor_status castor_runtime_statistics(const castor_runtime* runtime,
                                                   castor_statistics* statistics,
                                                   castor_error* error) CASTOR_NOEXCEPT;

/// Bytes in use by a runtime and the kernels made with it, those that outlive it included.
typedef struct castor_memory_statistics {
  size_t struct_size;            ///< set by the caller: sizeof(castor_memory_statistics)
  uint64_t scratch_bytes;        ///< held by bound kernels and calls; not the callers' own
  uint64_t packed_weight_bytes;  ///< bytes of its packed weights, whichever runtime uses them
  uint64_t code_bytes;           ///< pages of machine code and its constants
} castor_memory_statistics;
#define CASTOR_MEMORY_STATISTICS \
  { sizeof(castor_memory_statistics), 0, 0, 0 }

/// Fills in the fields that both sides know, and sets those that only newer headers have to 0.
CASTOR_API castor_status castor_runtime_memory(const castor_runtime* runtime,
                                               castor_memory_statistics* statistics,
                                               castor_error* error) CASTOR_NOEXCEPT;

/// CASTOR_OK where everything that castor_runtime_options::observe asks for could be written in
/// this process; else the first failure.
CASTOR_API castor_status castor_runtime_observation(const castor_runtime* runtime,
                                                    castor_error* error) CASTOR_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif
