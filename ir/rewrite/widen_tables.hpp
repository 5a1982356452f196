// SPDX-License-Identifier: Apache-2.0
// Tables of elements narrower than a byte.
#pragma once

#include "ir/function.hpp"

namespace castor {

/// Writes look-ups in tables of sub-byte elements as look-ups in the same tables of bytes: the
/// table is converted first, and the result back. The 8-bit type holds every value exactly, or, for
/// nf4, closely enough to give the same code. Returns the same pointer when nothing changes. Thread
/// safe.
FunctionPtr widen_tables(const FunctionPtr& function);

}  // namespace castor
