// SPDX-License-Identifier: Apache-2.0
// Emits the part of a tile's copy that goes element by element, or by shuffles where elements lie a
// few apart.
#pragma once

#include "jit/emit/assembler.hpp"

namespace castor::jit {

/// Emits a function, but for its label: a TileCopyFunction for any copy.
void emit_strided_copy(Assembler& code, int element_bytes);

}  // namespace castor::jit
