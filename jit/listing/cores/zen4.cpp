// SPDX-License-Identifier: Apache-2.0
// Zen 4.
//
// How long: measured on an EPYC of family 25, model 17, by castor-ports, with loops of independent
// instructions and of ones that wait for each other: bench/data/ports/instructions-zen4.csv. A
// 512-bit instruction is one micro-operation that holds a 256-bit pipe for two cycles, so 0.5 a
// cycle on two pipes reads "FP12", "FP12*2". "ymm = half" where only zmm was measured. Masks
// of 64 bits are two of 32.
//
// Where: measured too, by running two instructions by turns (bench/data/ports/pairs-zen4.csv), and
// as AMD's Software Optimization Guide for Zen 4 (57647), 2.11.1, has it: float products share
// pipes with saturating additions, integer products, rotations and comparisons into masks, FP0 FP1;
// float additions, comparisons of floats in vectors, shifts and mask logic FP2 FP3; shuffles FP1
// FP2, simple ones FP3 as well; integer addition, comparison and logic are done anywhere. Data that
// leave the vector unit take FP4 FP5. "G2F" is the way from general registers, of which there is
// one. A store by the signs of a vector is microcode: 12 cycles, whatever runs beside it.
//
// Latencies: InstLatx64 (Genoa, AuthenticAMD0A10F11), and the first table.
#include "jit/listing/port_notation.hpp"

namespace castor::jit {
namespace {

using enum Cost;

constexpr std::string_view ports[] = {"FP0",  "FP1",  "FP2",  "FP3",  "FP4",    "FP5",
                                      "ALU0", "ALU1", "ALU2", "ALU3", "branch", "G2F"};

// clang-format off
constexpr CoreRow rows[] = {
    // class                up to 256 bits       512 bits             latencies
    {masked_load,            "FP01",              "FP01*2"},
    {masked_store,           "FP0123*12@1"},
    {vector_alu,             "FP0123",            "FP0123*2",          1, 1},  // vpaddd 0.49, ymm 0.25; vpblendmd 0.49
    {ternary_logic,          "FP0123",            "FP0123*2.4",        1, 1},  // zmm 0.61: its third source costs something
    {vector_min_max,         "FP0123",            "FP0123*2",          1, 1},
    {vector_min_max_64,      "FP01",              "FP01*2",            2, 2},
    {vector_equal_64,        "FP01",              "FP01*2",            2, 2},
    {vector_greater_64,      "FP01",              "FP01*2",            2, 2},
    {vector_saturate,        "FP01",              "FP01*2",            2, 2},
    {vector_average,         "FP0123",            "FP0123*2",          2, 2},
    {vector_count_bits,      "FP01",              "FP01*2",            2, 2},
    {vector_count_zeros,     "FP01",              "FP01*2",            2, 2},
    {vector_shuffle,         "FP12",              "FP12*2",            2, 2},  // vpshufb 0.99, ymm 0.49
    {vector_shuffle_32,      "FP123",             "FP123*2",           1, 1},
    {vector_shuffle_float,   "FP123",             "FP123*2",           1, 1},
    {vector_align,           "FP12",              "FP12*2",            2, 2},  // vpalignr 0.99
    {vector_pack,            "FP12",              "FP12*2",            2, 2},  // vpackssdw 0.99
    {vector_unpack,          "FP123",             "FP123*2",           1, 1},  // vpunpcklbw 0.66: three pipes, as LLVM has it for vpermilps; ymm = half
    {vector_permute,         "FP12",              "FP12*2",            4, 5},  // vpermb, vpermps, vshufi32x4 0.99
    {vector_permute_16,      "FP12",              "FP12*2",            4, 5},
    {vector_permute_two,     "FP12",              "FP12*2",            4, 5},
    {vector_permute_two_16,  "FP12",              "FP12*2",            4, 5},
    {vector_permute_two_8,   "FP12",              "FP12*2",            4, 5},  // vpermi2b 0.99
    {vector_widen,           "FP12",              "FP12*2",            2, 4},  // vpmovzxbd 0.99, also from memory
    {vector_narrow,          "FP12",              "FP12*2",            4, 5},  // vpmovsdb 0.99, also to memory
    {vector_insert,          "FP12",              "FP12*2",            1, 1},
    {vector_insert_load,     "FP12",              "FP12*2",            1, 1},
    {vector_extract,         "FP12",              "FP12*2",            3, 5},
    {vector_extract_store,   "FP12",              "FP12*2"},
    {vector_broadcast,       "FP12",              "FP12*2",            1, 1},
    {vector_broadcast_load,  "-"},
    {vector_broadcast_lanes, "-",                 "FP12*2"},
    {vector_expand,          "FP01 FP12",         "FP01*2 FP12*2",     4, 5},
    {vector_shift,           "FP23",              "FP23*2",            1, 1},
    {vector_shift_bytes,     "FP12",              "FP12*2",            2, 2},
    {vector_rotate,          "FP01",              "FP01*2",            2, 2},
    {vector_multiply,        "FP01",              "FP01*2",            3, 3},
    {vector_multiply_32,     "FP01",              "FP01*2",            3, 3},
    {vector_multiply_64,     "FP01",              "FP01*2",            3, 3},
    {vector_sad,             "FP01",              "FP01*2",            3, 3},
    {vector_horizontal,      "FP0123@1 FP0123@1", {},                  2},  // 2.0, whatever runs beside it
    {float_horizontal,       "FP0123@1 FP0123@1", {},                  4},
    {vector_multishift,      "FP01",              "FP01*2",            3, 3},
    {vector_affine,          "FP01",              "FP01*2",            3, 3},
    {vector_test,            "FP12 FP45*0.8"},
    {dot_product,            "FP01",              "FP01*2",            4, 4},  // vpdpbusd, vpdpwssd 0.99
    {blend_by_vector,        "FP12",              "FP12*2",            1, 1},
    {blend_floats_by_vector, "FP01",              "FP01*2",            1, 1},
    {blend_floats,           "FP0123",            "FP0123*2",          1, 1},
    {blend_words,            "FP0123",            "FP0123*2",          1, 1},
    {float_multiply,         "FP01",              "FP01*2",            3, 3},  // vmulps 0.99
    {float_fused,            "FP01",              "FP01*2",            4, 4},  // vfmadd231ps 0.99
    {float_estimate,         "FP01",              "FP01*2",            5, 5},
    {float_add,              "FP23",              "FP23*2",            3, 3},  // vaddps 0.99
    {float_compare,          "FP23",              "FP23*2",            2, 2},
    {float_fixup,            "FP01",              "FP01*2",            2, 2},  // vfixupimmps 0.99
    {float_compare_mask,     "FP01",              "FP01*2"},  // vcmpps 0.99
    {float_compare_flags,    "FP23 FP0123@1"},
    {float_round,            "FP23",              "FP23*2",            3, 3},  // vrndscaleps 0.99
    {float_scale,            "FP23*2",            "FP23*4",            6, 6},  // LLVM and GCC: two micro-operations
    {float_exponent,         "FP23",              "FP23*2",            3, 3},
    {float_convert,          "FP23",              "FP23*2",            3, 3},  // vcvtdq2ps, vcvttps2dq, vcvttps2udq, vcvtqq2pd, vcvttpd2qq 0.99
    {float_convert_width,    "FP23 FP12",         "FP23*2 FP12*2",     5, 6},
    {float_to_bf16,          "FP23 FP12",         "FP23*2 FP12*2",     6, 7},
    {float_to_half,          "FP23 FP12",         "FP23*2 FP12*2",     6, 7},
    {float_to_gpr,           "FP23 FP45*2"},
    {gpr_to_float,           "FP23+G2F FP23"},
    {divide_f32,             "FP1*3",             "FP1*6",             11, 11},
    {divide_f64,             "FP1*4.5",           "FP1*9",             13, 13},
    {sqrt_f32,               "FP1*5",             "FP1*10",            15, 15},
    {sqrt_f64,               "FP1*8.4",           "FP1*16",            21, 21},
    {half_arithmetic,        "?"},  // the core lacks AVX512-FP16
    {half_compare_mask,      "?"},
    {half_round,             "?"},
    {half_convert,           "?"},
    {half_convert_32,        "?"},
    {half_convert_64,        "?"},
    {divide_f16,             "?"},
    {sqrt_f16,               "?"},
    {mask_compare,           "FP01",              "FP01*2"},
    {mask_from_vector,       "FP01",              "FP01*2"},
    {mask_to_vector,         "FP0123",            "FP0123*2"},  // vpmovm2b 0.49
    {mask_logic,             "FP23",              "FP23*2",            1, 1},  // kandw 0.50, kandq 1.00
    {mask_test,              "FP23+FP45*0.5",     "FP23*2+FP45"},
    {mask_add,               "FP23",              "FP23*2",            1, 1},
    {mask_shift,             "FP23",              "FP23*2",            1, 2},
    {mask_load,              "FP01",              "FP01*2"},
    {mask_to_gpr,            "FP45*2",            "FP45*4"},
    {gpr_to_mask,            "FP01+G2F FP23",     "FP01*2+G2F FP23"},
    {vector_to_gpr,          "FP45*2"},
    {gpr_to_vector,          "FP23+G2F"},
    {gpr_insert,             "FP23+G2F FP123",    "FP23+G2F FP123*2",  2, 2},
    {gpr_insert_load,        "FP123",             "FP123*2"},
    {gpr_extract,            "FP45*2 FP0123",     "FP45*2 FP0123*2"},
    {gpr_extract_store,      "-"},
    {gpr_broadcast,          "FP23+G2F FP12",     "FP23+G2F FP12*2"},
    {gpr_alu,                "ALU0123",           {},                  1},
    {gpr_carry,              "ALU0123",           {},                  1},
    {gpr_count,              "ALU0123",           {},                  1},
    {gpr_trailing_zeros,     "ALU0123",           {},                  1},
    {gpr_bits,               "ALU12",             {},                  1},
    {gpr_extract_bits,       "ALU12",             {},                  1},
    {gpr_exchange,           "ALU0123*0 ALU0123*0"},  // renamed: two slots of the front end
    {gpr_flags_read,         "ALU03",             {},                  1},
    {gpr_set,                "ALU03",             {},                  1},
    {gpr_shift,              "ALU12",             {},                  1},
    {gpr_multiply,           "ALU1",              {},                  3},
    {gpr_deposit,            "ALU1",              {},                  3},
    {gpr_divide,             "ALU0*5.9"},  // 32 bits; 64 bits take more
    {jump,                   "ALU0|branch"},
    {control_register,       "FP45*17"},  // stmxcsr and two ldmxcsr: 7 ns at 3.65 GHz
    {zero_upper,             "FP0123@1"},
};
// clang-format on

}  // namespace

// Loads and stores: 1.00 and 2.00 of 512 bits, 0.50 and 1.00 of 256. Three
// loads a cycle, of which two may be of vectors (AMD's guide); one of 512 bits is two.
constexpr PortCore zen4_ports = {
    .name = "Zen 4",
    .ports = ports,
    .load = {.gpr = {1.0 / 3},
             .mask = {.all = 1.0 / 3, .wide = 0.5},
             .vector = {.all = 1.0 / 3, .wide = 0.5},
             .vector_512 = {.all = 2.0 / 3, .wide = 1}},
    .store = {.gpr = 1.0 / 2, .mask = 1, .vector = 1, .vector_512 = 2},
    .gather_element = 16.9 / 16,  // vpgatherdd
    .width = 6,
    .costs = notation::table_of(ports, rows),
};

}  // namespace castor::jit
