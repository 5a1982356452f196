// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/fold_ops.hpp"

#include "jit/emit/op_helpers.hpp"

namespace castor::jit {

namespace {

/// One row for each fold: instructions for lanes of 8, 16, 32 and 64 bits.
struct FoldInstructions {
  Fold fold;
  std::array<BinaryMnemonic, 4> widths;
};

constexpr std::array<FoldInstructions, 7> table = {{
    {Fold::none, {}},
    {Fold::add,
     {CASTOR_BINARY(vpaddb), CASTOR_BINARY(vpaddw), CASTOR_BINARY(vpaddd), CASTOR_BINARY(vpaddq)}},
    {Fold::float_add, {nullptr, nullptr, CASTOR_BINARY(vaddps), CASTOR_BINARY(vaddpd)}},
    {Fold::min_signed,
     {CASTOR_BINARY(vpminsb), CASTOR_BINARY(vpminsw), CASTOR_BINARY(vpminsd),
      CASTOR_BINARY(vpminsq)}},
    {Fold::max_signed,
     {CASTOR_BINARY(vpmaxsb), CASTOR_BINARY(vpmaxsw), CASTOR_BINARY(vpmaxsd),
      CASTOR_BINARY(vpmaxsq)}},
    {Fold::min_unsigned,
     {CASTOR_BINARY(vpminub), CASTOR_BINARY(vpminuw), CASTOR_BINARY(vpminud),
      CASTOR_BINARY(vpminuq)}},
    {Fold::max_unsigned,
     {CASTOR_BINARY(vpmaxub), CASTOR_BINARY(vpmaxuw), CASTOR_BINARY(vpmaxud),
      CASTOR_BINARY(vpmaxuq)}},
}};

constexpr bool table_is_in_enum_order() {
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].fold != static_cast<Fold>(i)) return false;
  }
  return true;
}
static_assert(table_is_in_enum_order());

/// Whether the fold is a comparison of 64-bit lanes, for which AVX2 has no instruction.
bool compares_quadwords(Fold fold, int lane_bits, const Target& target) {
  const bool adds = fold == Fold::add || fold == Fold::float_add;
  return lane_bits == 64 && !adds && !target.has_avx512();
}

/// Unsigned numbers are compared with their highest bits inverted.
void emit_fold_quadwords(Assembler& code, Fold fold, const Xmm& to, const Xmm& a, const Xmm& b,
                         const FoldScratch& scratch) {
  constexpr uint64_t sign = uint64_t{1} << 63;
  const int bits = width_of(a);
  const auto of_width = [&](const Xmm& vector) { return vector_register(vector.getIdx(), bits); };
  const Xmm greater = of_width(scratch[0]);
  Xmm left = a;
  Xmm right = b;
  if (fold == Fold::min_unsigned || fold == Fold::max_unsigned) {
    left = of_width(scratch[1]);
    right = of_width(scratch[2]);
    code.vpbroadcastq(greater, code.constant_of(sign));
    code.vpxor(left, a, greater);
    code.vpxor(right, b, greater);
  }
  code.vpcmpgtq(greater, left, right);
  const bool takes_greater = fold == Fold::max_signed || fold == Fold::max_unsigned;
  takes_greater ? code.vblendvpd(to, b, a, greater) : code.vblendvpd(to, a, b, greater);
}

}  // namespace

uint64_t fold_identity(Fold fold, int lane_bits) {
  const uint64_t ones = ~uint64_t{0} >> (64 - lane_bits);
  switch (fold) {
    case Fold::min_signed: return ones >> 1;
    case Fold::max_signed: return (ones >> 1) + 1;
    case Fold::min_unsigned: return ones;
    default: return 0;
  }
}

int fold_scratch_vectors(Fold fold, int lane_bits, const Target& target) {
  return compares_quadwords(fold, lane_bits, target) ? 3 : 0;
}

void emit_fold(Assembler& code, const Target& target, Fold fold, int lane_bits, const Xmm& to,
               const Xmm& a, const Xmm& b, const FoldScratch& scratch) {
  if (compares_quadwords(fold, lane_bits, target)) {
    return emit_fold_quadwords(code, fold, to, a, b, scratch);
  }
  table[static_cast<size_t>(fold)].widths[width_index(lane_bits)](code, to, a, b);
}

}  // namespace castor::jit
