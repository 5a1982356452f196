// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/packed_copy.hpp"

#include <numeric>

namespace castor::jit {

namespace {

bool keeps_codes(const std::vector<uint8_t>& map) {
  std::vector<uint8_t> same(map.size());
  std::iota(same.begin(), same.end(), uint8_t{0});
  return map == same;
}

}  // namespace

std::unique_ptr<PackedCopy> PackedCopy::of(ElementType from, ElementType to,
                                           const std::vector<uint8_t>& map, const Target& target) {
  const bool keeps_storage = bits_of(from) == bits_of(to) && info(from).order == info(to).order;
  if (!keeps_storage || !keeps_codes(map)) return nullptr;
  return std::unique_ptr<PackedCopy>(new PackedCopy(bits_of(from), target.vector_bits()));
}

PackedCopy::PackedCopy(int element_bits, int vector_bits)
    : element_bits_(element_bits),
      vector_bits_(vector_bits),
      vectors_(element_bits % 3 == 0 ? 3 : 4) {}

void PackedCopy::emit(Stores stores, LaneEmitter& emitter, const Frame& frame,
                      NestLoops& loops) const {
  Assembler& code = emitter.code();
  const auto at = [&](size_t operand, int vector) {
    return code.ptr[frame.emit_pointer(operand) + gpr::counter + vector * vector_bits_ / 8];
  };
  loops.emit_main_loop(elements(), [&] {
    const Section copy = code.section(CodeSection::packed_copy);
    emit_byte_offset(code, gpr::counter, element_bits_);
    std::vector<OwnedVector> vectors;
    for (int i = 0; i < vectors_; ++i) {
      vectors.push_back(emitter.scratch());
      code.vmovups(vectors.back().as(vector_bits_), at(0, i));
    }
    for (int i = 0; i < vectors_; ++i) {
      const Xbyak::Xmm vector = vectors[static_cast<size_t>(i)].as(vector_bits_);
      stores == Stores::streaming ? code.vmovntps(at(1, i), vector)
                                  : code.vmovups(at(1, i), vector);
    }
  });
}

}  // namespace castor::jit
