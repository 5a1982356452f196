// SPDX-License-Identifier: Apache-2.0
// What families of instructions occupy on Zen 4.
//
// How long: throughputs measured on the reference machine with loops of 24 independent
// instructions, in the comment at the row (cycles each, zmm unless said). A 512-bit instruction is
// one micro-operation that holds a 256-bit pipe for two cycles, so 0.5 a cycle on two pipes reads
// {2 pipes, 1 cycle, 2 cycles}. "ymm = half" where only zmm was measured.
//
// Where: AMD, Software Optimization Guide for Zen 4 (57647), 2.11.1, as quoted and completed by
// the scheduling models of LLVM (X86ScheduleZnver4.td) and GCC (zn4zn5.md), which agree: float
// multiply and compare FP0 FP1; float add, round and convert FP2 FP3; divide FP1; integer add,
// compare and logic anywhere, saturating ones FP0 FP1; integer multiply FP0 FP3; shuffle, pack and
// shift FP1 FP2; mask logic and tests FP2 FP3; between vectors and general registers two cycles of
// FP4 FP5. Where neither says which pipes, `pipes_at_most` bounds the family by its own throughput
// and the work counts against all four vector pipes: the bound stays a bound.
#include <algorithm>
#include <array>

#include "jit/listing/port_model.hpp"

namespace castor::jit {
namespace {

using namespace pipe;

constexpr CostRow costs[] = {
    {.cost = Cost::same, .name = "same"},
    {.cost = Cost::unmeasured, .name = "unmeasured"},
    {.cost = Cost::none, .name = "none"},
    // vpaddd 0.49, ymm 0.25; vpblendmd 0.49.
    {.cost = Cost::vector_alu, .name = "vector_alu", .first = {fp0123, 1, 2}},
    // vpternlogd 0.60: its third source costs something. ymm = half.
    {.cost = Cost::ternary_logic, .name = "ternary_logic", .first = {fp0123, 1.2, 2.4}},
    {.cost = Cost::vector_alu_complex, .name = "vector_alu_complex", .first = {fp01, 1, 2}},
    // vpshufb 0.99, ymm 0.49; vperm*, vpalignr, vpmov*, vpack*, vshufi32x4 0.99.
    {.cost = Cost::vector_shuffle, .name = "vector_shuffle", .first = {fp12, 1, 2}},
    // vpunpcklbw 0.66: three pipes, as LLVM has it for vpermilps. ymm = half.
    {.cost = Cost::vector_unpack, .name = "vector_unpack", .first = {fp123, 1, 2}},
    // vpcompressb, vpexpandb 1.32 = 4 cycles on three pipes. ymm = half.
    {.cost = Cost::vector_expand, .name = "vector_expand", .first = {fp123, 2, 4}},
    // vpslld, vpsllvw 0.99.
    {.cost = Cost::vector_shift, .name = "vector_shift", .first = {fp12, 1, 2}},
    // vpmulld, vpmullw, vpmullq, vpmaddubsw, vpmaddwd 0.99, vpmaddwd ymm 0.49.
    {.cost = Cost::vector_multiply, .name = "vector_multiply", .first = {fp03, 1, 2}},
    {.cost = Cost::vector_sad, .name = "vector_sad", .first = {fp03, 1, 2}},
    // Two shuffles and an addition.
    {.cost = Cost::vector_horizontal,
     .name = "vector_horizontal",
     .first = {fp12, 2, 4},
     .second = {fp0123, 1, 2}},
    // gf2p8affineqb, vpmultishiftqb 0.99; ymm = half.
    {.cost = Cost::vector_pair_unknown,
     .name = "vector_pair_unknown",
     .first = {fp0123, 1, 2},
     .pipes_at_most = 2},
    {.cost = Cost::vector_test,
     .name = "vector_test",
     .first = {fp12, 1, 2},
     .second = {fp45, 2, 2}},
    // vpdpbusd, vpdpwssd 0.99.
    {.cost = Cost::dot_product, .name = "dot_product", .first = {fp01, 1, 2}},
    {.cost = Cost::blend_by_vector, .name = "blend_by_vector", .first = {fp03, 1, 2}},
    // vmulps, vfmadd231ps 0.99.
    {.cost = Cost::float_multiply, .name = "float_multiply", .first = {fp01, 1, 2}},
    // vaddps 0.99.
    {.cost = Cost::float_add, .name = "float_add", .first = {fp23, 1, 2}},
    // vminps, vcmpps, vrangeps, vfixupimmps 0.99.
    {.cost = Cost::float_compare, .name = "float_compare", .first = {fp01, 1, 2}},
    {.cost = Cost::float_compare_flags,
     .name = "float_compare_flags",
     .first = {fp01, 1, 1},
     .second = {fp45, 2, 2}},
    // vrndscaleps 0.99.
    {.cost = Cost::float_round, .name = "float_round", .first = {fp23, 1, 2}},
    // LLVM and GCC: two micro-operations.
    {.cost = Cost::float_scale, .name = "float_scale", .first = {fp23, 2, 4}},
    // vcvtdq2ps, vcvttps2dq, vcvttps2udq, vcvtqq2pd, vcvttpd2qq 0.99.
    {.cost = Cost::float_convert, .name = "float_convert", .first = {fp23, 1, 2}},
    // vcvtph2ps, vcvtneps2bf16, vcvtps2pd, vcvtpd2ps, vcvttps2qq 1.32, vcvtph2ps ymm 0.78: a
    // conversion and a shuffle, 1.33 and 0.67 if they spread evenly over FP1 to FP3.
    {.cost = Cost::float_convert_width,
     .name = "float_convert_width",
     .first = {fp23, 1.17, 1.98},
     .second = {fp12, 1.17, 1.98}},
    // vcvtps2ph 1.36, ymm 0.78.
    {.cost = Cost::float_to_half,
     .name = "float_to_half",
     .first = {fp23, 1.17, 2.04},
     .second = {fp12, 1.17, 2.04}},
    {.cost = Cost::float_to_gpr,
     .name = "float_to_gpr",
     .first = {fp23, 1, 1},
     .second = {fp45, 2, 2}},
    {.cost = Cost::gpr_to_float,
     .name = "gpr_to_float",
     .first = {fp45, 2, 2},
     .second = {fp23, 1, 1}},
    // vdivps 5.97; the others from LLVM and GCC.
    {.cost = Cost::divide_f32, .name = "divide_f32", .first = {fp1, 3, 6}},
    {.cost = Cost::divide_f64, .name = "divide_f64", .first = {fp1, 5, 10}},
    {.cost = Cost::sqrt_f32, .name = "sqrt_f32", .first = {fp1, 5, 10}},
    {.cost = Cost::sqrt_f64, .name = "sqrt_f64", .first = {fp1, 9, 18}},
    // vpcmpub, vptestnmd 0.99.
    {.cost = Cost::mask_compare,
     .name = "mask_compare",
     .first = {fp0123, 1, 2},
     .pipes_at_most = 2},
    // vpmovb2m 0.99.
    {.cost = Cost::mask_from_vector,
     .name = "mask_from_vector",
     .first = {fp0123, 1, 2},
     .pipes_at_most = 2},
    // vpmovm2b 0.49.
    {.cost = Cost::mask_to_vector, .name = "mask_to_vector", .first = {fp0123, 1, 2}},
    {.cost = Cost::mask_logic, .name = "mask_logic", .first = {fp23, 1, 1}},
    {.cost = Cost::mask_shift, .name = "mask_shift", .first = {fp0123, 1, 1}, .pipes_at_most = 2},
    {.cost = Cost::mask_transfer, .name = "mask_transfer", .first = {fp45, 1, 1}},
    {.cost = Cost::transfer, .name = "transfer", .first = {fp45, 2, 2}},
    {.cost = Cost::transfer_shuffle,
     .name = "transfer_shuffle",
     .first = {fp45, 2, 2},
     .second = {fp12, 1, 2}},
    {.cost = Cost::gpr_alu, .name = "gpr_alu", .first = {alu0123, 1, 1}},
    {.cost = Cost::gpr_exchange, .name = "gpr_exchange", .first = {alu0123, 2, 2}},
    {.cost = Cost::gpr_flags_read, .name = "gpr_flags_read", .first = {alu03, 1, 1}},
    {.cost = Cost::gpr_shift, .name = "gpr_shift", .first = {alu12, 1, 1}},
    {.cost = Cost::gpr_multiply, .name = "gpr_multiply", .first = {alu1, 1, 1}},
    // The cycles of 32 bits; 64 bits take 18.
    {.cost = Cost::gpr_divide, .name = "gpr_divide", .first = {alu0, 12, 12}},
    {.cost = Cost::jump, .name = "jump", .first = {any_branch, 1, 1}},
    // stmxcsr and two ldmxcsr: 7 ns at 3.65 GHz.
    {.cost = Cost::control_register, .name = "control_register", .first = {fp45, 17, 17}},
    // 0.3 ns.
    {.cost = Cost::zero_upper, .name = "zero_upper", .first = {fp45, 2.2, 2.2}},
};

constexpr bool is_sorted_by_cost() {
  for (size_t i = 0; i < std::size(costs); ++i) {
    if (costs[i].cost != static_cast<Cost>(i)) return false;
  }
  return std::size(costs) == static_cast<size_t>(Cost::zero_upper) + 1;
}
static_assert(is_sorted_by_cost());

}  // namespace

const CostRow& cost_row(PortModel model, Cost cost) {
  constexpr std::array<std::span<const CostRow>, 1> models = {costs};
  return models[static_cast<size_t>(model)][static_cast<size_t>(cost)];
}

std::string names_of(Pipes pipes) {
  constexpr std::array<std::string_view, pipe::count> names = {
      "FP0", "FP1", "FP2", "FP3", "FP4", "FP5", "ALU0", "ALU1", "ALU2", "ALU3", "branch"};
  std::string text;
  for (int i = 0; i < pipe::count; ++i) {
    if ((pipes >> i & 1) == 0) continue;
    if (!text.empty()) text += ' ';
    text += names[i];
  }
  return text;
}

}  // namespace castor::jit
