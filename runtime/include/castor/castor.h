// SPDX-License-Identifier: Apache-2.0
// castor's C API: small tensor functions compiled to x86-64 machine code at run time. C11; the C++
// API, castor/castor.hpp, is the same thing with types.
//
//   castor_runtime* runtime;
//   castor_kernel* kernel;
//   castor_bound_kernel* bound;
//   castor_error error;
//   castor_runtime_create(NULL, &runtime, &error);
//   castor_runtime_compile_text(runtime, text, strlen(text), NULL, &kernel, &error);
//   castor_kernel_bind(kernel, &shape, 1, NULL, 0, NULL, &bound, &error);  // shapes of the inputs
//   castor_bound_kernel_run(bound, &input, 1, &output, 1, NULL, &error);
//
// What holds for every function:
//
// - It returns a status, and says why in the castor_error that it is given, if any. No exception
//   leaves it. NULL where something is needed is CASTOR_INVALID_ARGUMENT, or what its comment says.
// - Handles (castor_runtime, castor_function ...) are immutable and may be used by several threads
//   at a time; castor_builder alone is for one thread at a time. There is no global state.
// - Who gets a handle from a call destroys it, once, when no thread uses it any more. Destroying
//   NULL does nothing. Handles hold what they need: they are destroyed in any order; only a
//   castor_thread_pool outlives what was given its executor.
// - A pointer that a call returns belongs to the handle that it was asked of, and lives as long.
//   What a call is given it does not keep: it may be gone when the call returns. Only callbacks
//   and their contexts are kept, for as long as castor_executor, castor_allocator and
//   castor_observe_options say. Callbacks throw nothing and do not jump out.
// - Structures that may grow begin with struct_size, which the caller sets (the macros of their
//   names in capitals do). A library that is older than the caller's headers refuses fields that it
//   does not know, unless they are zero; a newer one takes what older headers lack as zero. The
//   others (castor_view, castor_dim, castor_extents, castor_attribute, castor_named_constant,
//   castor_error) are frozen: another form of them is another CASTOR_ABI_VERSION.
#pragma once

#include "castor/c/base.h"
#include "castor/c/dlpack.h"
#include "castor/c/executor.h"
#include "castor/c/function.h"
#include "castor/c/kernel.h"
#include "castor/c/memory.h"
#include "castor/c/observe.h"
#include "castor/c/runtime.h"
#include "castor/c/tensor.h"
