// SPDX-License-Identifier: Apache-2.0
// Kernels of castor's C API: compiled, bound to shapes, run. Include castor/castor.h.
#pragma once

#include "castor/c/executor.h"
#include "castor/c/function.h"
#include "castor/c/memory.h"

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
  CASTOR_TIER_AVX512_VBMI = 5,
  CASTOR_TIER_AVX512_FP16 = 6,
  CASTOR_TIER_AMX = 7
};
/// E.g. "avx512_vnni", as CASTOR_ISA takes it; "none" for CASTOR_TIER_NONE, NULL for a number that
/// is no tier. Lives for ever.
CASTOR_API const char* castor_tier_name(castor_tier tier) CASTOR_NOEXCEPT;

/// What executes a kernel.
typedef int32_t castor_engine;
enum {
  CASTOR_ENGINE_NONE = 0,        ///< no kernel: NULL
  CASTOR_ENGINE_JIT = 1,         ///< generated machine code
  CASTOR_ENGINE_INTERPRETER = 2  ///< the reference interpreter: slow, same bits
};

CASTOR_API void castor_kernel_destroy(castor_kernel* kernel) CASTOR_NOEXCEPT;

/// What was compiled: tells inputs and outputs. Lives as long as the kernel; NULL for NULL.
CASTOR_API const castor_function* castor_kernel_function(const castor_kernel* kernel)
    CASTOR_NOEXCEPT;
CASTOR_API castor_engine castor_kernel_engine(const castor_kernel* kernel) CASTOR_NOEXCEPT;
/// Why the interpreter executes it, or why convolutions are of a lower tier than the CPU allows:
/// the operating system gives no tile registers; else, and for NULL, "". Lives as long as the
/// kernel.
CASTOR_API const char* castor_kernel_engine_reason(const castor_kernel* kernel) CASTOR_NOEXCEPT;
/// The tier of its code; CASTOR_TIER_NONE in the interpreter, and for NULL.
CASTOR_API castor_tier castor_kernel_tier(const castor_kernel* kernel) CASTOR_NOEXCEPT;

/// Whose scratch the calls of a bound kernel use.
typedef int32_t castor_scratch_owner;
enum {
  /// The bound kernel keeps one task's scratch, made when it is bound, and that of more tasks from
  /// the first call that has an executor on; only calls that run at the same time allocate more.
  CASTOR_SCRATCH_OF_KERNEL = 0,
  /// The bound kernel keeps none, and every call that needs scratch must bring it.
  CASTOR_SCRATCH_OF_CALLER = 1
};

/// How a kernel is bound. A field of zeros is its default.
typedef struct castor_bind_options {
  size_t struct_size;  ///< sizeof(castor_bind_options)
  castor_scratch_owner scratch;
  int32_t reserved;  ///< 0
} castor_bind_options;
#define CASTOR_BIND_OPTIONS \
  { sizeof(castor_bind_options), CASTOR_SCRATCH_OF_KERNEL, 0 }

/// Settles shapes and strides, which may generate code. `shapes`: the extents of every input.
/// `strides`: in elements, of every input, then of every output; NULL and 0: all tensors are dense.
/// Strides are positive wherever the extent exceeds 1; outputs do not overlap themselves.
/// `options` may be NULL. On success *bound is the caller's, else NULL.
CASTOR_API castor_status castor_kernel_bind(const castor_kernel* kernel,
                                            const castor_extents* shapes, size_t shape_count,
                                            const castor_extents* strides, size_t stride_count,
                                            const castor_bind_options* options,
                                            castor_bound_kernel** bound,
                                            castor_error* error) CASTOR_NOEXCEPT;
/// Settles shapes and strides as these views have them; their data may be NULL.
CASTOR_API castor_status castor_kernel_bind_views(const castor_kernel* kernel,
                                                  const castor_view* inputs, size_t input_count,
                                                  const castor_view* outputs, size_t output_count,
                                                  const castor_bind_options* options,
                                                  castor_bound_kernel** bound,
                                                  castor_error* error) CASTOR_NOEXCEPT;
CASTOR_API void castor_bound_kernel_destroy(castor_bound_kernel* bound) CASTOR_NOEXCEPT;

CASTOR_API size_t castor_bound_kernel_output_count(const castor_bound_kernel* bound)
    CASTOR_NOEXCEPT;
/// The extents of an output, which live as long as `bound`; {NULL, -1} for NULL and for an index
/// that it does not have.
CASTOR_API castor_extents castor_bound_kernel_output_shape(const castor_bound_kernel* bound,
                                                           size_t index) CASTOR_NOEXCEPT;
/// What executes it: the interpreter also where executable memory was refused at binding, or its
/// limit was reached. Binding again later may find room.
CASTOR_API castor_engine castor_bound_kernel_engine(const castor_bound_kernel* bound)
    CASTOR_NOEXCEPT;
/// As castor_kernel_engine_reason, also of what is found out at binding. Lives as long as `bound`.
CASTOR_API const char* castor_bound_kernel_engine_reason(const castor_bound_kernel* bound)
    CASTOR_NOEXCEPT;
CASTOR_API castor_tier castor_bound_kernel_tier(const castor_bound_kernel* bound) CASTOR_NOEXCEPT;
/// Bytes of machine code that its calls may go through, constants among them; code that other
/// kernels share counts in each. 0 in the interpreter, and for NULL.
CASTOR_API size_t castor_bound_kernel_code_bytes(const castor_bound_kernel* bound) CASTOR_NOEXCEPT;

/// Bytes of scratch that a call takes, split into at most that many tasks: a multiple of
/// CASTOR_SCRATCH_ALIGNMENT, 0 where it takes none and for NULL, SIZE_MAX where they cannot be
/// counted. Fewer than 1: as many tasks as the runtime's executor has, 1 without one.
CASTOR_API size_t castor_bound_kernel_scratch_bytes(const castor_bound_kernel* bound,
                                                    int32_t tasks) CASTOR_NOEXCEPT;

/// How outputs are stored.
typedef int32_t castor_store_policy;
enum {
  CASTOR_STORES_AUTOMATIC = 0,  ///< streaming when a call's tensors exceed the outermost cache
  CASTOR_STORES_CACHED = 1,
  CASTOR_STORES_STREAMING = 2  ///< where the tensors are dense, large, aligned and not in place
};

/// How a call is run. A field of zeros is its default.
typedef struct castor_run_options {
  size_t struct_size;  ///< sizeof(castor_run_options)
  castor_store_policy stores;
  int32_t reserved;  ///< 0
  /// The executor whose threads do large work, instead of the runtime's; NULL: the runtime's. (A
  /// CASTOR_SERIAL_EXECUTOR keeps the call on its own thread.) Used until the call returns.
  const castor_executor* executor;
  /// Memory for the call's intermediate results, at least castor_bound_kernel_scratch_bytes for as
  /// many tasks as the executor has, at a multiple of CASTOR_SCRATCH_ALIGNMENT, apart from all
  /// tensors; its contents do not matter, and nothing is kept in it. With it a run that succeeds
  /// allocates nothing at all (the interpreter, and more than 16 inputs or outputs, apart). NULL
  /// and 0: the bound kernel's own is used.
  void* scratch;
  size_t scratch_bytes;
} castor_run_options;
#define CASTOR_RUN_OPTIONS \
  { sizeof(castor_run_options), CASTOR_STORES_AUTOMATIC, 0, NULL, NULL, 0 }

/// Computes outputs from inputs, one view for each in the function's order. Checks number, element
/// types, shapes, strides, offsets, bytes available and overlap first: after a failure no output
/// has been touched. An output may be an input's exact memory (same address, element size, storage
/// order, shape and strides): in place; else it may share no byte with any other tensor, but
/// strided tensors may interleave (see BoundKernel::run in castor/castor.hpp). `options` may be
/// NULL. Never compiles, and allocates nothing for up to 16 inputs and 16 outputs but scratch (see
/// castor_run_options::scratch and castor_scratch_owner; the interpreter apart).
CASTOR_API castor_status castor_bound_kernel_run(const castor_bound_kernel* bound,
                                                 const castor_view* inputs, size_t input_count,
                                                 const castor_view* outputs, size_t output_count,
                                                 const castor_run_options* options,
                                                 castor_error* error) CASTOR_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif
