// SPDX-License-Identifier: Apache-2.0
// Whether published code is code that was emitted.
#pragma once

#include <algorithm>

#include "jit/memory/code_memory.hpp"

namespace castor::test {

/// Whether a block has the instructions, for where its constants are, and the constants.
inline bool is_published(const jit::MachineCode& code, const jit::CodeBlock& block) {
  const auto distance = static_cast<size_t>(block.pool().data() - block.code());
  const std::span published(block.code(), block.code_size());
  return std::ranges::equal(jit::instructions_for(code, distance), published) &&
         std::ranges::equal(code.pool(), block.pool());
}

}  // namespace castor::test
