// SPDX-License-Identifier: Apache-2.0
// Zen 4.
//
// How long: throughputs measured on the reference machine with loops of 24 independent
// instructions, in the comment at the row (cycles each, zmm unless said). A 512-bit instruction is
// one micro-operation that holds a 256-bit pipe for two cycles, so 0.5 a cycle on two pipes reads
// "FP12", "FP12*2". "ymm = half" where only zmm was measured.
//
// Where: AMD, Software Optimization Guide for Zen 4 (57647), 2.11.1, as quoted and completed by
// the scheduling models of LLVM (X86ScheduleZnver4.td) and GCC (zn4zn5.md), which agree: float
// multiply and compare FP0 FP1; float add, round and convert FP2 FP3; divide FP1; integer add,
// compare and logic anywhere, saturating ones FP0 FP1; integer multiply FP0 FP3; shuffle, pack and
// shift FP1 FP2; mask logic and tests FP2 FP3; between vectors and general registers two cycles of
// FP4 FP5. Where neither says which pipes, "@" bounds the class by its own throughput.
//
// Latencies: InstLatx64 (Genoa, AuthenticAMD0A10F11).
#include "jit/listing/port_notation.hpp"

namespace castor::jit {
namespace {

using enum Cost;

constexpr std::string_view ports[] = {"FP0",  "FP1",  "FP2",  "FP3",  "FP4",   "FP5",
                                      "ALU0", "ALU1", "ALU2", "ALU3", "branch"};

// clang-format off
constexpr CoreRow rows[] = {
    // class                up to 256 bits       512 bits             latencies
    {vector_alu,            "FP0123",            "FP0123*2",          1, 1},  // vpaddd 0.49, ymm 0.25; vpblendmd 0.49
    {ternary_logic,         "FP0123*1.2",        "FP0123*2.4",        1, 1},  // vpternlogd 0.60: its third source costs something; ymm = half
    {vector_min_max,        "FP0123",            "FP0123*2",          1, 1},
    {vector_min_max_64,     "FP01",              "FP01*2",            2, 2},
    {vector_equal_64,       "FP01",              "FP01*2",            2, 2},
    {vector_greater_64,     "FP0123",            "FP0123*2",          2, 2},
    {vector_saturate,       "FP01",              "FP01*2",            2, 2},
    {vector_average,        "FP01",              "FP01*2",            2, 2},
    {vector_count_bits,     "FP01",              "FP01*2",            2, 2},
    {vector_count_zeros,    "FP01",              "FP01*2",            2, 2},
    {vector_shuffle,        "FP12",              "FP12*2",            2, 2},  // vpshufb 0.99, ymm 0.49
    {vector_shuffle_32,     "FP12",              "FP12*2",            1, 1},
    {vector_shuffle_float,  "FP12",              "FP12*2",            1, 1},
    {vector_align,          "FP12",              "FP12*2",            2, 2},  // vpalignr 0.99
    {vector_pack,           "FP12",              "FP12*2",            2, 2},  // vpackssdw 0.99
    {vector_unpack,         "FP123",             "FP123*2",           1, 1},  // vpunpcklbw 0.66: three pipes, as LLVM has it for vpermilps; ymm = half
    {vector_permute,        "FP12",              "FP12*2",            4, 5},  // vpermb, vpermps, vshufi32x4 0.99
    {vector_permute_16,     "FP12",              "FP12*2",            4, 5},
    {vector_permute_two,    "FP12",              "FP12*2",            4, 5},
    {vector_permute_two_16, "FP12",              "FP12*2",            4, 5},
    {vector_permute_two_8,  "FP12",              "FP12*2",            4, 5},  // vpermi2b 0.99
    {vector_widen,          "FP12",              "FP12*2",            2, 4},  // vpmovzxbd 0.99, also from memory
    {vector_narrow,         "FP12",              "FP12*2",            4, 5},  // vpmovsdb 0.99, also to memory
    {vector_insert,         "FP12",              "FP12*2",            1, 1},
    {vector_insert_load,    "FP0123",            "FP0123*2",          1, 1},
    {vector_extract,        "FP12",              "FP12*2",            3, 5},
    {vector_extract_store,  "FP12",              "FP12*2"},
    {vector_broadcast,      "FP12",              "FP12*2",            1, 1},
    {vector_broadcast_load, "FP12",              "FP12*2"},
    {vector_broadcast_lanes, "-"},
    {vector_expand,         "FP123*2",           "FP123*4",           4, 5},  // vpcompressb, vpexpandb 1.32 = 4 cycles on three pipes; ymm = half
    {vector_shift,          "FP12",              "FP12*2",            1, 1},  // vpslld, vpsllvw 0.99
    {vector_shift_bytes,    "FP12",              "FP12*2",            2, 2},
    {vector_rotate,         "FP12",              "FP12*2",            2, 2},
    {vector_multiply,       "FP03",              "FP03*2",            3, 3},  // vpmullw, vpmaddubsw, vpmaddwd 0.99, vpmaddwd ymm 0.49
    {vector_multiply_32,    "FP03",              "FP03*2",            3, 3},  // vpmulld 0.99
    {vector_multiply_64,    "FP03",              "FP03*2",            3, 3},  // vpmullq 0.99
    {vector_sad,            "FP03",              "FP03*2",            3, 3},
    {vector_horizontal,     "FP12*2 FP0123",     "FP12*4 FP0123*2",   2, 2},  // two shuffles and an addition
    {float_horizontal,      "FP12*2 FP0123",     "FP12*4 FP0123*2",   4, 4},
    {vector_multishift,     "FP0123@2",          "FP0123*2@2",        3, 3},  // 0.99; ymm = half
    {vector_affine,         "FP0123@2",          "FP0123*2@2",        3, 3},  // gf2p8affineqb 0.99; ymm = half
    {vector_test,           "FP12 FP45*2",       "FP12*2 FP45*2"},
    {dot_product,           "FP01",              "FP01*2",            4, 4},  // vpdpbusd, vpdpwssd 0.99
    {blend_by_vector,       "FP03",              "FP03*2",            1, 1},
    {blend_floats_by_vector, "FP01",             "FP01*2",            1, 1},
    {blend_floats,          "FP01",              "FP01*2",            1, 1},
    {blend_words,           "FP0123",            "FP0123*2",          1, 1},
    {float_multiply,        "FP01",              "FP01*2",            3, 3},  // vmulps 0.99
    {float_fused,           "FP01",              "FP01*2",            4, 4},  // vfmadd231ps 0.99
    {float_estimate,        "FP01",              "FP01*2",            5, 5},
    {float_add,             "FP23",              "FP23*2",            3, 3},  // vaddps 0.99
    {float_compare,         "FP01",              "FP01*2",            2, 2},  // vminps, vrangeps, vfixupimmps 0.99
    {float_fixup,           "FP01",              "FP01*2",            2, 2},  // vfixupimmps 0.99
    {float_compare_mask,    "FP01",              "FP01*2"},                   // vcmpps 0.99
    {float_compare_flags,   "FP01 FP45*2"},
    {float_round,           "FP23",              "FP23*2",            3, 3},  // vrndscaleps 0.99
    {float_scale,           "FP23*2",            "FP23*4",            6, 6},  // LLVM and GCC: two micro-operations
    {float_exponent,        "FP0123@2",          "FP0123*2@2",        3, 3},
    {float_convert,         "FP23",              "FP23*2",            3, 3},  // vcvtdq2ps, vcvttps2dq, vcvttps2udq, vcvtqq2pd, vcvttpd2qq 0.99
    // vcvtph2ps, vcvtps2pd, vcvtpd2ps, vcvttps2qq 1.32, vcvtph2ps ymm 0.78: a conversion and a
    // shuffle, 1.33 and 0.67 if they spread evenly over FP1 to FP3.
    {float_convert_width,   "FP23*1.17 FP12*1.17", "FP23*1.98 FP12*1.98", 5, 6},
    {float_to_bf16,         "FP23*1.17 FP12*1.17", "FP23*1.98 FP12*1.98", 6, 7},  // vcvtneps2bf16 1.32
    {float_to_half,         "FP23*1.17 FP12*1.17", "FP23*2.04 FP12*2.04", 6, 7},  // vcvtps2ph 1.36, ymm 0.78
    {float_to_gpr,          "FP23 FP45*2"},
    {gpr_to_float,          "FP45*2 FP23"},
    {divide_f32,            "FP1*3",             "FP1*6",             11, 11},  // vdivps 5.97; the next three from LLVM and GCC
    {divide_f64,            "FP1*5",             "FP1*10",            13, 13},
    {sqrt_f32,              "FP1*5",             "FP1*10",            15, 15},
    {sqrt_f64,              "FP1*9",             "FP1*18",            21, 21},
    {half_arithmetic,       "?"},  // the core lacks AVX512-FP16
    {half_compare_mask,     "?"},
    {half_round,            "?"},
    {half_convert,          "?"},
    {half_convert_32,       "?"},
    {half_convert_64,       "?"},
    {divide_f16,            "?"},
    {sqrt_f16,              "?"},
    {mask_compare,          "FP0123@2",          "FP0123*2@2"},  // vpcmpub, vptestnmd 0.99
    {mask_from_vector,      "FP0123@2",          "FP0123*2@2"},  // vpmovb2m 0.99
    {mask_to_vector,        "FP0123",            "FP0123*2"},    // vpmovm2b 0.49
    {mask_logic,            "FP23",              "FP23",              1, 1},
    {mask_test,             "FP23"},
    {mask_add,              "FP23",              "FP23",              1, 1},
    {mask_shift,            "FP0123@2",          "FP0123@2",          1, 1},
    {mask_load,             "-"},
    {mask_to_gpr,           "FP45"},
    {gpr_to_mask,           "FP45"},
    {vector_to_gpr,         "FP45*2"},
    {gpr_to_vector,         "FP45*2"},
    {gpr_insert,            "FP45*2 FP12",       "FP45*2 FP12*2"},
    {gpr_insert_load,       "FP12",              "FP12*2"},
    {gpr_extract,           "FP45*2 FP12",       "FP45*2 FP12*2"},
    {gpr_extract_store,     "FP12",              "FP12*2"},
    {gpr_broadcast,         "FP45*2 FP12",       "FP45*2 FP12*2"},
    {gpr_alu,               "ALU0123",           {},                  1},
    {gpr_carry,             "ALU0123",           {},                  1},
    {gpr_count,             "ALU0123",           {},                  1},
    {gpr_bits,              "ALU12",             {},                  1},
    {gpr_extract_bits,      "ALU12",             {},                  1},
    {gpr_exchange,          "ALU0123*2"},
    {gpr_flags_read,        "ALU03",             {},                  1},
    {gpr_set,               "ALU03",             {},                  1},
    {gpr_shift,             "ALU12",             {},                  1},
    {gpr_multiply,          "ALU1",              {},                  3},
    {gpr_deposit,           "ALU1",              {},                  3},
    {gpr_divide,            "ALU0*12"},  // 32 bits; 64 bits take 18
    {jump,                  "ALU0|branch"},
    {control_register,      "FP45*17"},   // stmxcsr and two ldmxcsr: 7 ns at 3.65 GHz
    {zero_upper,            "FP45*2.2"},  // 0.3 ns
};
// clang-format on

}  // namespace

// Loads and stores: 1.00 and 1.98 of 512 bits, 0.50 and 0.99 of 256, kmovq from memory 0.99. Three
// loads a cycle, of which two may be of vectors (AMD's guide); one of 512 bits is two.
constexpr PortCore zen4_ports = {
    .name = "Zen 4",
    .ports = ports,
    .load = {.gpr = {1.0 / 3},
             .mask = {.all = 1.0 / 3, .wide = 1},
             .vector = {.all = 1.0 / 3, .wide = 0.5},
             .vector_512 = {.all = 2.0 / 3, .wide = 1}},
    .store = {.gpr = 1.0 / 2, .mask = 1, .vector = 1, .vector_512 = 2},
    .gather_element = 16.9 / 16,  // vpgatherdd
    .width = 6,
    .costs = notation::table_of(ports, rows),
};

}  // namespace castor::jit
