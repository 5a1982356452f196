// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/fold_ops.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

/// One row for each fold: instructions for lanes of 8, 16, 32 and 64 bits.
struct FoldInstructions {
  Fold fold;
  std::array<BinaryMnemonic, 4> widths;
};

/// vrangeps with the sign that the comparison has: -0 is below +0 (Intel SDM, VRANGEPS).
template <uint8_t control>
constexpr std::array<BinaryMnemonic, 4> ranges = {
    nullptr, nullptr,
    [](Assembler& c, const Xmm& t, const Xmm& a, const Xbyak::Operand& b) {
      c.vrangeps(t, a, b, control);
    },
    [](Assembler& c, const Xmm& t, const Xmm& a, const Xbyak::Operand& b) {
      c.vrangepd(t, a, b, control);
    }};

constexpr std::array<FoldInstructions, 10> table = {{
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
    {Fold::float_min, ranges<0b0100>},
    {Fold::float_max, ranges<0b0101>},
    {Fold::any_nan, {}},  // emit_any_nan
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

uint64_t infinity_bits(int lane_bits) {
  return lane_bits == 32 ? std::bit_cast<uint32_t>(std::numeric_limits<float>::infinity())
                         : std::bit_cast<uint64_t>(std::numeric_limits<double>::infinity());
}

/// Keeps `a`, except where b is NaN. The fold is as good either way round.
void emit_any_nan(Assembler& code, int lane_bits, const Xmm& to, Xmm a, Xmm b,
                  const Xmm& responses) {
  constexpr uint8_t no_flags = 0;
  if (to.getIdx() == b.getIdx()) std::swap(a, b);
  if (to.getIdx() != a.getIdx()) code.vmovaps(to, a);
  lane_bits == 32 ? code.vfixupimmps(to, b, responses, no_flags)
                  : code.vfixupimmpd(to, b, responses, no_flags);
}

}  // namespace

uint64_t fold_identity(Fold fold, int lane_bits) {
  const uint64_t ones = ~uint64_t{0} >> (64 - lane_bits);
  switch (fold) {
    case Fold::min_signed: return ones >> 1;
    case Fold::max_signed: return (ones >> 1) + 1;
    case Fold::min_unsigned: return ones;
    case Fold::float_min: return infinity_bits(lane_bits);
    case Fold::float_max: return infinity_bits(lane_bits) | uint64_t{1} << (lane_bits - 1);
    default: return 0;
  }
}

bool finds_nans(const LaneProgram& program) {
  return std::ranges::any_of(program.sinks,
                             [](const MemoryOperand& sink) { return sink.fold == Fold::any_nan; });
}

std::vector<uint8_t> nan_responses(int vector_bits) {
  constexpr int nan_for_nans = 0x33;  // quiet ones, signalling ones
  return repeated_constant<uint32_t>(vector_bits, nan_for_nans);
}

int fold_scratch_vectors(Fold fold, int lane_bits, const Target& target) {
  if (fold == Fold::any_nan) return 1;
  return compares_quadwords(fold, lane_bits, target) ? 3 : 0;
}

void emit_fold(Assembler& code, const Target& target, Fold fold, int lane_bits, const Xmm& to,
               const Xmm& a, const Xmm& b, const FoldScratch& scratch) {
  if (compares_quadwords(fold, lane_bits, target)) {
    return emit_fold_quadwords(code, fold, to, a, b, scratch);
  }
  if (fold == Fold::any_nan) {
    return emit_any_nan(code, lane_bits, to, a, b,
                        vector_register(scratch[0].getIdx(), width_of(to)));
  }
  table[static_cast<size_t>(fold)].widths[width_index(lane_bits)](code, to, a, b);
}

}  // namespace castor::jit
