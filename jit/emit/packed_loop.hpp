// SPDX-License-Identifier: Apache-2.0
// Loops over sub-byte codes that stay packed: nests that make codes of consecutive codes, each of
// one alone, need not unpack them.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "jit/emit/frame.hpp"
#include "jit/emit/lane_emitter.hpp"
#include "jit/emit/nest_loops.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {

/// A way to do whole iterations of such a nest. What is left is done by its lane program.
class PackedLoop {
 public:
  virtual ~PackedLoop() = default;

  /// What dumps call it.
  virtual std::string_view name() const = 0;
  /// Elements that an iteration does.
  virtual int elements() const = 0;
  /// The vector registers that its code uses beside those that it asks the emitter for.
  virtual uint32_t taken_vectors() const { return 0; }
  /// Emits a loop from gpr::index on, while another iteration ends at gpr::extent or before.
  virtual void emit(Stores stores, LaneEmitter& emitter, const Frame& frame,
                    NestLoops& loops) const = 0;
};

/// to = the byte at which element gpr::index of that many bits begins.
void emit_byte_offset(Assembler& code, const Xbyak::Reg64& to, int element_bits);

/// The loop of a nest, or null where it has none.
std::unique_ptr<const PackedLoop> packed_loop(const Nest& nest, const NestForm& form,
                                              const Target& target);

}  // namespace castor::jit
