// SPDX-License-Identifier: Apache-2.0
// Emits the part of a tile's copy that copies element by element, or by shuffles where the distance
// of elements is small.
#pragma once

#include "jit/emit/assembler.hpp"

namespace castor::jit {

/// Emits a function, but for its label: that of a TileCopySpec for any copy.
void emit_strided_copy(Assembler& code, int element_bytes);

}  // namespace castor::jit
