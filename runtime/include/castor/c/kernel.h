// SPDX-License-Identifier: Apache-2.0
// Kernels of castor's C API: compiled, bound to shapes, run. Include castor/castor.h.
#pragma once

#include "castor/c/function.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A compiled function, and one whose unknown extents and strides are settled. Immutable; any
/// thread may use them, several at a time. Each holds what it needs: it may outlive what it was
/// made from.
typedef struct castor_kernel castor_kernel;
typedef struct castor_bound_kernel castor_bound_kernel;

/// Sets of CPU features that code is generated for.
typedef int32_t castor_tier;
enum {
  CASTOR_TIER_AUTOMATIC = 0,  ///< as an option: the best that the machine has
  CASTOR_TIER_NONE = 0,       ///< as an answer: there is no code
  CASTOR_TIER_AVX2 = 1,
  CASTOR_TIER_AVX2_VNNI = 2,
  CASTOR_TIER_AVX512 = 3,
  CASTOR_TIER_AVX512_VNNI = 4,
  CASTOR_TIER_AVX512_VBMI = 5
};
/// E.g. "avx512_vnni", as CASTOR_ISA takes it; "none" for CASTOR_TIER_NONE, NULL for a number that
/// is no tier. Lives for ever.
CASTOR_API const char* castor_tier_name(castor_tier tier) CASTOR_NOEXCEPT;

/// What executes a kernel.
typedef int32_t castor_engine;
enum {
  CASTOR_ENGINE_NONE = 0,        ///< of NULL
  CASTOR_ENGINE_JIT = 1,         ///< generated machine code
  CASTOR_ENGINE_INTERPRETER = 2  ///< the reference interpreter: slow, same bits
};

CASTOR_API void castor_kernel_destroy(castor_kernel* kernel) CASTOR_NOEXCEPT;

/// What was compiled: tells inputs and outputs. Lives as long as the kernel; NULL for NULL.
CASTOR_API const castor_function* castor_kernel_function(const castor_kernel* kernel)
    CASTOR_NOEXCEPT;
CASTOR_API castor_engine castor_kernel_engine(const castor_kernel* kernel) CASTOR_NOEXCEPT;
/// Why the interpreter executes it; "" for generated code, and for NULL. Lives as long as the
/// kernel.
CASTOR_API const char* castor_kernel_engine_reason(const castor_kernel* kernel) CASTOR_NOEXCEPT;
/// The tier of its code; CASTOR_TIER_NONE in the interpreter, and for NULL.
CASTOR_API castor_tier castor_kernel_tier(const castor_kernel* kernel) CASTOR_NOEXCEPT;

/// Settles shapes and strides, which may generate code. `shapes`: the extents of every input.
/// `strides`: in elements, of every input, then of every output; NULL and 0: all tensors are dense.
/// Strides are positive wherever the extent exceeds 1; outputs do not overlap themselves. On
/// success *bound is the caller's, else NULL.
CASTOR_API castor_status castor_kernel_bind(const castor_kernel* kernel,
                                            const castor_extents* shapes, size_t shape_count,
                                            const castor_extents* strides, size_t stride_count,
                                            castor_bound_kernel** bound,
                                            castor_error* error) CASTOR_NOEXCEPT;
/// Settles shapes and strides as these views have them; their data may be NULL.
CASTOR_API castor_status castor_kernel_bind_views(const castor_kernel* kernel,
                                                  const castor_view* inputs, size_t input_count,
                                                  const castor_view* outputs, size_t output_count,
                                                  castor_bound_kernel** bound,
                                                  castor_error* error) CASTOR_NOEXCEPT;
CASTOR_API void castor_bound_kernel_destroy(castor_bound_kernel* bound) CASTOR_NOEXCEPT;

CASTOR_API size_t castor_bound_kernel_output_count(const castor_bound_kernel* bound)
    CASTOR_NOEXCEPT;
/// The extents of an output, which live as long as `bound`; {NULL, -1} for NULL and for an index
/// that it does not have.
CASTOR_API castor_extents castor_bound_kernel_output_shape(const castor_bound_kernel* bound,
                                                           size_t index) CASTOR_NOEXCEPT;
CASTOR_API castor_engine castor_bound_kernel_engine(const castor_bound_kernel* bound)
    CASTOR_NOEXCEPT;
CASTOR_API castor_tier castor_bound_kernel_tier(const castor_bound_kernel* bound) CASTOR_NOEXCEPT;
/// Bytes of machine code that its calls may go through, constants among them; code that other
/// kernels share counts in each. 0 in the interpreter, and for NULL.
CASTOR_API size_t castor_bound_kernel_code_bytes(const castor_bound_kernel* bound) CASTOR_NOEXCEPT;

/// How outputs are stored.
typedef int32_t castor_store_policy;
enum {
  CASTOR_STORES_AUTOMATIC = 0,  ///< streaming when a call's tensors exceed the outermost cache
  CASTOR_STORES_CACHED = 1,
  CASTOR_STORES_STREAMING = 2  ///< where the tensors are dense, large, aligned and not in place
};

/// Runs the tasks of a call: an engine's own threads.
typedef struct castor_executor {
  size_t struct_size;  ///< sizeof(castor_executor)
  void* context;       ///< the engine's, handed to parallel_for
  int32_t tasks;       ///< into how many tasks at the most a call is split; at least 1
  /// Calls task(task_context, i) for each i from 0 to count - 1, on any threads in any order, and
  /// returns when all have returned. Several calls may come at the same time.
  void (*parallel_for)(void* context, int32_t count,
                       void (*task)(void* task_context, int32_t index), void* task_context);
  /// How long it takes, in nanoseconds, from a call of parallel_for until other threads are at
  /// work: every task is given at least so much to do, and smaller work is done without such a
  /// call. 0: what pools take whose threads sleep (40 us); negative: nothing.
  int64_t wake_up_ns;
} castor_executor;

/// How a call is run. A field of zeros is its default.
typedef struct castor_run_options {
  size_t struct_size;  ///< sizeof(castor_run_options)
  castor_store_policy stores;
  const castor_executor* executor;  ///< NULL: the caller's thread does everything
} castor_run_options;
#define CASTOR_RUN_OPTIONS \
  { sizeof(castor_run_options), CASTOR_STORES_AUTOMATIC, NULL }

/// Computes outputs from inputs, one view for each in the function's order. Checks number, element
/// types, shapes, strides, offsets, bytes available and overlap first: after a failure no output
/// has been touched. An output may be an input's exact memory (same address, element size, storage
/// order, shape and strides): in place; any other overlap is refused. `options` may be NULL. Never
/// compiles, and allocates nothing for up to 16 inputs and 16 outputs but what the C++ API's
/// BoundKernel::run does.
CASTOR_API castor_status castor_bound_kernel_run(const castor_bound_kernel* bound,
                                                 const castor_view* inputs, size_t input_count,
                                                 const castor_view* outputs, size_t output_count,
                                                 const castor_run_options* options,
                                                 castor_error* error) CASTOR_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif
