// SPDX-License-Identifier: Apache-2.0
// Machine code as text, in C: the component castor::listing, which needs a disassembler (Zydis).
#pragma once

#include "castor/castor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The annotated listing of a bound kernel's code, as `castor dump --stage asm` prints it: of every
/// elementwise nest the code that its calls go through; of convolutions and requantizations the
/// code that is made for large tensors of that kind. In the interpreter it is one line that says
/// so. On success *text is the caller's, else NULL. Thread safe.
CASTOR_API castor_status castor_bound_kernel_listing(const castor_bound_kernel* bound,
                                                     castor_text** text,
                                                     castor_error* error) CASTOR_NOEXCEPT;

/// Stages of the lowering.
typedef int32_t castor_dump_stage;
enum {
  CASTOR_DUMP_IR = 1,       ///< the function before and after it is canonicalised
  CASTOR_DUMP_NEST = 2,     ///< its nests: loops, operands, access patterns
  CASTOR_DUMP_LANES = 3,    ///< the program that one chunk of lanes runs through
  CASTOR_DUMP_ASSEMBLY = 4  ///< the annotated listing of the machine code
};

/// One stage of the function's lowering, as `castor dump` prints it, for dense tensors: for a tier,
/// also one that this machine cannot run (CASTOR_TIER_AUTOMATIC: the best that it has, or that the
/// environment variable CASTOR_ISA names; avx2 where there is none), and a core
/// (CASTOR_CORE_AUTOMATIC: the generic one, so that plans are the same on every machine).
/// CASTOR_UNSUPPORTED where no nest can be planned. On success *text is the caller's, else NULL.
/// Thread safe.
CASTOR_API castor_status castor_function_dump(const castor_function* function,
                                              castor_dump_stage stage, castor_tier tier,
                                              castor_core core, castor_text** text,
                                              castor_error* error) CASTOR_NOEXCEPT;

/// For castor_observe_options::listing: the annotated listing that `castor dump --stage asm` prints
/// of each piece of code. Lives for ever; never NULL. Thread safe.
CASTOR_API const castor_disassembler* castor_listing_writer(void) CASTOR_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif
