// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/packed_copy.hpp"

#include <numeric>
#include <vector>

#include "jit/emit/code_map.hpp"

namespace castor::jit {

namespace {

/// Three vectors hold whole groups of eight elements of 3 and 6 bits.
int vectors_of(ElementType element) { return bits_of(element) % 3 == 0 ? 3 : 4; }

/// Whether the nest makes each code of itself.
bool keeps_codes(const Nest& nest) {
  const std::optional<std::vector<uint8_t>> map = code_map(nest.program);
  if (!map) return false;
  std::vector<uint8_t> same(map->size());
  std::iota(same.begin(), same.end(), uint8_t{0});
  return *map == same;
}

}  // namespace

bool copies_packed(const Nest& nest, const NestForm& form) {
  if (nest.operands() != 2) return false;
  const ElementType from = nest.element(0);
  const ElementType to = nest.element(1);
  return is_sub_byte(from) && bits_of(from) == bits_of(to) && info(from).order == info(to).order &&
         form.access[0] == Access::contiguous && form.access[1] == Access::contiguous &&
         keeps_codes(nest);
}

int packed_copy_elements(const Nest& nest, const Target& target) {
  return vectors_of(nest.element(0)) * target.vector_bits() / bits_of(nest.element(0));
}

void emit_packed_copy(const Nest& nest, Stores stores, LaneEmitter& emitter, const Frame& frame,
                      NestLoops& loops) {
  Assembler& code = emitter.code();
  const int bits = emitter.target().vector_bits();
  const auto at = [&](size_t operand, int vector) {
    return code.ptr[frame.emit_pointer(operand) + gpr::counter + vector * bits / 8];
  };
  loops.emit_main_loop(packed_copy_elements(nest, emitter.target()), [&] {
    const Section copy = code.section(CodeSection::packed_copy);
    code.imul(gpr::counter, gpr::index, bits_of(nest.element(0)));
    code.shr(gpr::counter, 3);
    std::vector<OwnedVector> vectors;
    for (int i = 0; i < vectors_of(nest.element(0)); ++i) {
      vectors.push_back(emitter.scratch());
      code.vmovups(vectors.back().as(bits), at(0, i));
    }
    for (int i = 0; i < vectors_of(nest.element(0)); ++i) {
      const Xbyak::Xmm vector = vectors[static_cast<size_t>(i)].as(bits);
      stores == Stores::streaming ? code.vmovntps(at(1, i), vector)
                                  : code.vmovups(at(1, i), vector);
    }
  });
}

}  // namespace castor::jit
