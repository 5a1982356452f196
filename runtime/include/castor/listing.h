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

/// For castor_observe_options::listing: the annotated listing that `castor dump --stage asm` prints
/// of each piece of code. Lives for ever; never NULL. Thread safe.
CASTOR_API const castor_disassembler* castor_listing_writer(void) CASTOR_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif
