// SPDX-License-Identifier: Apache-2.0
// Emits the part of a tile's copy that transposes blocks.
#pragma once

#include "jit/emit/assembler.hpp"

namespace castor::jit {

/// Emits a function, but for its label: that of a TileCopySpec for copies of at least
/// `transposed_block_bytes` of columns and of rows, where the source's elements are consecutive
/// from row to row, and the destination's within rows.
void emit_transpose(Assembler& code, int element_bytes);

}  // namespace castor::jit
