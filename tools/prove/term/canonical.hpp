// SPDX-License-Identifier: Apache-2.0
// Terms as text that is the same in each process, and its hash.
#pragma once

#include <string>

#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// One line per node, operands before their users: "n3:32 = add n1 n2". Inputs are numbered in the
/// order in which the text meets them and stand without their names, so that queries that differ
/// by names or by the order of commuting operands alone have one text.
std::string canonical_text(const Term& term);

/// A hash of canonical_text, 64 bits.
uint64_t canonical_hash(const Term& term);

}  // namespace castor::prove
