// SPDX-License-Identifier: Apache-2.0
// Which two instructions, one after the other, a core's front end makes one of. Private to
// jit/listing/.
#pragma once

#include "jit/listing/decoder.hpp"

namespace castor::jit {

/// Whether `decoded` and the conditional jump after it are one (the manuals' branch fusion, the
/// same on all cores as far as castor's code goes): it sets the flags.
bool fuses_with_jump(const DecodedInstruction& decoded);

/// Whether a copy of a general register and the calculation after it that overwrites the copy are
/// one, on a core that does so (`PortCore::fuses_moves`): `mov rax, rdx` and `sub rax, rcx`. The
/// second operand is an immediate or another register. Measured on a Zen 5 with four such pairs and
/// four vpaddd a cycle: add, sub, and, or, xor, shl, shr, sar, inc, dec and not fuse; neg, cmp,
/// rol, imul, lea, cmov, three-operand forms and operands in memory do not.
bool fuses_with_move(const DecodedInstruction& move, const DecodedInstruction& decoded);

}  // namespace castor::jit
