// SPDX-License-Identifier: Apache-2.0
#include "jit/plan/table_method.hpp"

#include <algorithm>

namespace castor::jit {

TableMethod table_method(const Target& target, int index_bits, int element_bits) {
  if (element_bits == 8 && index_bits == 4) return TableMethod::shuffle_bytes;
  if (!target.has_avx512()) return TableMethod::each_lane;
  if (element_bits == 8) {
    return target.supports(Feature::avx512_vbmi) ? TableMethod::permute_bytes
                                                 : TableMethod::permute_byte_pairs;
  }
  if (element_bits == 16) {
    return index_bits == 4 ? TableMethod::permute_i16 : TableMethod::permute_256_i16;
  }
  if (index_bits != 4) return TableMethod::each_lane;
  return element_bits == 32 ? TableMethod::permute_i32 : TableMethod::permute_i64;
}

int64_t lane_by_lane_gathers(const LaneProgram& program, std::span<const Access> access,
                             const Target& target) {
  return std::ranges::count_if(program.code, [&](const LaneInst& inst) {
    if (inst.op != LaneOp::gather) return false;
    const auto source = static_cast<size_t>(inst.imm);
    const int index_bits = program.sources[source].index_bits;
    return access[source] == Access::tables ||
           table_method(target, index_bits, bits_of(inst.type)) == TableMethod::each_lane;
  });
}

}  // namespace castor::jit
