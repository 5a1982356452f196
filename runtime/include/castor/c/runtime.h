// SPDX-License-Identifier: Apache-2.0
// Runtimes of castor's C API. Include castor/castor.h.
#pragma once

#include "castor/c/function.h"
#include "castor/c/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Compiles functions and owns the cache of kernels. Any thread may use it, several at a time.
typedef struct castor_runtime castor_runtime;

/// How a runtime is made. A field of zeros is its default.
typedef struct castor_runtime_options {
  size_t struct_size;  ///< sizeof(castor_runtime_options)
  /// Generate code for this tier instead of the best that the machine has (or that the environment
  /// variable CASTOR_ISA names).
  castor_tier tier;
  int32_t interpret;  ///< not 0: never generate code
  /// Bound of the cache, in bytes: half for machine code, half for functions. 0: 64 MiB.
  size_t cache_bytes;
} castor_runtime_options;
#define CASTOR_RUNTIME_OPTIONS \
  { sizeof(castor_runtime_options), CASTOR_TIER_AUTOMATIC, 0, 0 }

/// Makes a runtime; `options` may be NULL. Fails where the tier that is asked for does not run on
/// this machine. Where the machine has no AVX2, or executable memory is refused, functions run in
/// the interpreter, and castor_kernel_engine_reason says why. On success *runtime is the caller's,
/// else NULL.
CASTOR_API castor_status castor_runtime_create(const castor_runtime_options* options,
                                               castor_runtime** runtime,
                                               castor_error* error) CASTOR_NOEXCEPT;
/// Kernels survive their runtime.
CASTOR_API void castor_runtime_destroy(castor_runtime* runtime) CASTOR_NOEXCEPT;

/// The tier that code is generated for; CASTOR_TIER_NONE where everything is interpreted, and for
/// NULL.
CASTOR_API castor_tier castor_runtime_tier(const castor_runtime* runtime) CASTOR_NOEXCEPT;

/// Compiles a function, or finds it in the cache. On success *kernel is the caller's, else NULL.
CASTOR_API castor_status castor_runtime_compile(const castor_runtime* runtime,
                                                const castor_function* function,
                                                castor_kernel** kernel,
                                                castor_error* error) CASTOR_NOEXCEPT;
/// castor_function_parse without options, and castor_runtime_compile.
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

/// Counters of one runtime since it was made.
typedef struct castor_statistics {
  size_t struct_size;      ///< set by the caller: sizeof(castor_statistics)
  uint64_t functions;      ///< functions compiled (a repeated function counts once)
  uint64_t function_hits;  ///< compile calls that found their function
  uint64_t codes;          ///< pieces of machine code generated
  uint64_t code_hits;      ///< requests for machine code that found it
  uint64_t code_bytes;     ///< machine code held by the cache at present
} castor_statistics;
#define CASTOR_STATISTICS \
  { sizeof(castor_statistics), 0, 0, 0, 0, 0 }

/// Fills in the fields that both sides know, and sets those that only newer headers have to 0.
CASTOR_API castor_status castor_runtime_statistics(const castor_runtime* runtime,
                                                   castor_statistics* statistics,
                                                   castor_error* error) CASTOR_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif
