// SPDX-License-Identifier: Apache-2.0
// Machine code as text: the component castor::listing, which links a disassembler (Zydis); the
// library itself does not.
#pragma once

#include <castor/castor.hpp>

#include <string>

namespace castor {

/// The annotated listing of a bound kernel's code, as `castor dump --stage asm` prints it: of every
/// elementwise nest the code that its calls go through; of convolutions and requantizations the
/// code that is made for large tensors of that kind. In the interpreter it is one line that says
/// so. Thread safe.
CASTOR_API Result<std::string> listing(const BoundKernel& kernel);

/// For ObserveOptions::listing: the annotated listing that `castor dump --stage asm` prints, with
/// the operation that each instruction comes from, the cycles of loops, and the constants. Never
/// null. The writer fails (internal) at bytes that are no instruction. Thread safe.
CASTOR_API ListingWriter listing_writer();

}  // namespace castor
