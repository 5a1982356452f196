// SPDX-License-Identifier: Apache-2.0
// The proof of the kernel that looks bytes up in a table of 256.
#pragma once

#include "ir/support/result.hpp"
#include "jit/code.hpp"

namespace castor::prove {

/// That each byte becomes the table's entry with its number, in place too, for counts around each
/// loop's. Fails (internal), naming instruction or byte, where something is wrong. Returns how many
/// bytes were compared.
Result<size_t> prove_byte_table(const jit::MachineCode& code);

}  // namespace castor::prove
