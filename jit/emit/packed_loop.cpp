// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/packed_loop.hpp"

#include "jit/emit/code_map.hpp"
#include "jit/emit/moved_bits.hpp"
#include "jit/emit/moved_nibbles.hpp"
#include "jit/emit/packed_copy.hpp"

namespace castor::jit {

namespace {

/// Programs of more operations have constants and tables that stay in registers, and leave few for
/// loops with tables of their own.
constexpr size_t max_operations = 12;

}  // namespace

void emit_byte_offset(Assembler& code, const Xbyak::Reg64& to, int element_bits) {
  code.imul(to, gpr::index, element_bits);
  code.shr(to, 3);
}

std::unique_ptr<const PackedLoop> packed_loop(const Nest& nest, const NestForm& form,
                                              const Target& target) {
  if (nest.operands() != 2) return nullptr;
  if (form.access[0] != Access::contiguous || form.access[1] != Access::contiguous) return nullptr;
  const std::optional<std::vector<uint8_t>> map = code_map(nest.program);
  if (!map) return nullptr;
  const ElementType from = nest.element(0);
  const ElementType to = nest.element(1);
  if (auto copy = PackedCopy::of(from, to, *map, target)) return copy;
  if (nest.program.code.size() > max_operations) return nullptr;
  if (auto bits = MovedBits::of(from, to, *map, target)) return bits;
  return MovedNibbles::of(from, to, *map);
}

}  // namespace castor::jit
