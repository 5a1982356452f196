// SPDX-License-Identifier: Apache-2.0
// Listings of the machine code that a runtime makes. Part of the component castor::listing, which
// links a disassembler (Zydis); the library itself does not.
#pragma once

#include "castor/observe.hpp"

namespace castor {

/// For ObserveOptions::listing: the annotated listing that `castor dump --stage asm` prints, with
/// the operation that each instruction comes from, the cycles of loops, and the constants. Never
/// null. The writer fails (internal) at bytes that are no instruction. Thread safe.
ListingWriter listing_writer();

}  // namespace castor
