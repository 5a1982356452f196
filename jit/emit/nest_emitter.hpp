// SPDX-License-Identifier: Apache-2.0
// Emits the code of one nest: loops, tails, and lane programs in them.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "ir/result.hpp"
#include "jit/code.hpp"
#include "jit/nest.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// What the emitter decides about a nest before it emits: visible in `castor dump --stage nest`.
struct ChunkPlan {
  int lanes = 0;               ///< elements of a chunk: the widest lane type fills a vector
  int chunks = 0;              ///< chunks of one iteration of the main loop
  bool packs = false;          ///< narrow elements are collected to full vectors
  bool has_main_loop = false;  ///< false where an operand is strided: chunk by chunk
  int pending_vectors = 0;     ///< registers that packing holds between chunks
};
ChunkPlan plan_chunks(const Nest& nest, const NestForm& form, const Target& target);

/// The type of generated code: it takes the argument block that ArgumentLayout describes.
using NestFunction = void (*)(const int64_t* arguments);

struct EmitOptions {
  bool annotate = false;
  /// Text of the IR operation with that index, for notes.
  std::function<std::string(uint32_t)> origin_text;
};

/// Emits the nest for operands of that form. A pure function of its arguments. Fails (internal)
/// only when the assembler refuses an instruction.
Result<MachineCode> emit_nest(const Nest& nest, const NestForm& form, const Target& target,
                              const EmitOptions& options = {});

}  // namespace castor::jit
