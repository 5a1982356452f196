// SPDX-License-Identifier: Apache-2.0
// Zen 5 as servers have it, with data paths of 512 bits.
//
// How long: measured on an EPYC of family 26, model 2, by castor-ports, with loops of independent
// instructions and of ones that wait for each other: bench/data/ports/instructions-zen5.csv.
//
// Where: measured too, by running two instructions by turns (bench/data/ports/pairs-zen5.csv):
// float products and float additions share nothing, so they are FP0 FP1 and FP2 FP3, as AMD's
// Software Optimization Guide for Zen 5 (58455) has it; shuffles share one pipe with either of
// them, saturating additions the other one of each, and the two share nothing: FP1 FP2, FP0 FP3.
// Data that leave the vector unit, to memory or general registers, take FP4 FP5, be they of vectors
// or of masks. Those of vectors and the third sources of products that are added to something and
// of look-ups in two registers share something else, of which there are two as well, "RD0" and
// "RD1": by turns they take 1.0 and not 0.5, but third sources beside moves of masks take 0.5. A
// third source that is read when it has just been made takes none: such pairs take 0.67 to 0.85. A
// store of 512 bits beside third sources takes 1.45, beside moves 1.0, as if it took one. "G2F" is
// the way from general registers, of which there is one.
//
// Four loads a cycle, of which two may be of vectors or masks: by turns with a load of a general
// register, one of 256 bits takes 0.57 cycles for both and one of a mask 0.60; one of 512 bits
// takes 0.93, as if it were two.
//
// Latencies: operations that AMD gives one cycle take two where the scheduler is full of such that
// wait for each other, as it is in these loops and may be in castor's; alone they take one.
#include "jit/listing/port_notation.hpp"

namespace castor::jit {
namespace {

using enum Cost;

constexpr std::string_view ports[] = {"FP0",  "FP1",  "FP2",  "FP3",  "FP4", "FP5", "ALU0", "ALU1",
                                      "ALU2", "ALU3", "ALU4", "ALU5", "G2F", "RD0", "RD1"};

// clang-format off
constexpr CoreRow rows[] = {
    // class                any width            512 bits      latencies
    {masked_load,           "-"},
    {masked_store,          "-"},
    {vector_alu,            "FP0123",            {},           2},
    {ternary_logic,         "FP0123",            {},           2},
    {vector_min_max,        "FP0123",            {},           2},
    {vector_min_max_64,     "FP03",              {},           2},
    {vector_equal_64,       "FP03",              {},           2},
    {vector_greater_64,     "FP03",              {},           2},
    {vector_saturate,       "FP03",              {},           2},
    {vector_average,        "FP0123",            {},           2},
    {vector_count_bits,     "FP03",              {},           2},
    {vector_count_zeros,    "FP03",              {},           2},
    {vector_shuffle,        "FP12",              {},           2},
    {vector_shuffle_32,     "FP0123",            {},           2},
    {vector_shuffle_float,  "FP0123",            {},           2},
    {vector_align,          "FP12",              {},           2},
    {vector_pack,           "FP12",              {},           2},
    {vector_unpack,         "FP0123",            {},           2},
    {vector_permute,        "FP12",              {},           4, 5},
    {vector_permute_16,     "FP12",              {},           4, 5},
    {vector_permute_two,    "FP12+RD01",         {},           4, 5},
    {vector_permute_two_16, "FP12+RD01",         {},           4, 5},
    {vector_permute_two_8,  "FP12+RD01",         {},           4, 5},
    {vector_widen,          "FP12",              {},           2, 4},
    {vector_narrow,         "FP12",              {},           4, 5},
    {vector_insert,         "FP12",              {},           2},
    {vector_insert_load,    "FP12"},
    {vector_extract,        "FP12",              {},           3, 5},
    {vector_extract_store,  "FP12"},
    {vector_broadcast,      "FP12",              {},           2},
    {vector_broadcast_load, "-"},
    {vector_broadcast_lanes, "-",                "FP12"},
    {vector_expand,         "FP12 FP12",         {},           4, 5},
    {vector_shift,          "FP23",              {},           2},
    {vector_shift_bytes,    "FP12",              {},           2},
    {vector_rotate,         "FP01",              {},           2},
    {vector_multiply,       "FP01",              {},           3},
    {vector_multiply_32,    "FP01",              {},           3},
    {vector_multiply_64,    "FP01",              {},           3},
    {vector_sad,            "FP01",              {},           3},
    {vector_horizontal,     "FP0123@1 FP0123@1", {},           4},  // 2.0, whatever runs beside it
    {float_horizontal,      "FP0123@1 FP0123@1", {},           5},
    {vector_multishift,     "FP01",              {},           3},
    {vector_affine,         "FP12",              {},           3},
    {vector_test,           "FP12+FP45+RD01"},
    {dot_product,           "FP01+RD01",         {},           4},
    {blend_by_vector,       "FP12+RD01",         {},           2},
    {blend_floats_by_vector, "FP01+RD01",        {},           2},
    {blend_floats,          "FP0123",            {},           2},
    {blend_words,           "FP0123",            {},           2},
    {float_multiply,        "FP01",              {},           3},
    {float_fused,           "FP01+RD01",         {},           4},
    {float_estimate,        "FP12",              {},           5},
    {float_add,             "FP23",              {},           2},
    {float_compare,         "FP23",              {},           2},
    {float_fixup,           "FP01+RD01",         {},           2},
    {float_compare_mask,    "FP12"},
    {float_compare_flags,   "FP23+FP45+RD01"},
    {float_round,           "FP23",              {},           3},
    {float_scale,           "FP23 FP23",         {},           6},  // vreduceps; vscalefps 3
    {float_exponent,        "FP23",              {},           3},
    {float_convert,         "FP23",              {},           3},
    {float_convert_width,   "FP23 FP12",         {},           5, 6},  // to narrower lanes 6 and 7
    {float_to_bf16,         "FP23 FP12",         {},           6, 7},
    {float_to_half,         "FP23 FP12",         {},           6, 7},
    {float_to_gpr,          "FP23+FP45+RD01"},
    {gpr_to_float,          "G2F"},
    {divide_f32,            "FP1*2.5",           {},           10},
    {divide_f64,            "FP1*4",             {},           13},
    {sqrt_f32,              "FP1*4.5",           {},           14},
    {sqrt_f64,              "FP1*7.5",           {},           20},
    {half_arithmetic,       "?"},  // the core lacks AVX512-FP16
    {half_compare_mask,     "?"},
    {half_round,            "?"},
    {half_convert,          "?"},
    {half_convert_32,       "?"},
    {half_convert_64,       "?"},
    {divide_f16,            "?"},
    {sqrt_f16,              "?"},
    {mask_compare,          "FP12"},
    {mask_from_vector,      "FP12"},
    {mask_to_vector,        "FP0123"},
    {mask_logic,            "FP03",              {},           1},
    {mask_test,             "FP0123@2+FP45"},  // 1.0 beside either of FP03 and FP12
    {mask_add,              "FP03",              {},           1},
    {mask_shift,            "FP03",              {},           1},
    {mask_load,             "FP12"},
    {mask_to_gpr,           "FP45"},
    {gpr_to_mask,           "G2F"},
    {vector_to_gpr,         "FP45+RD01"},
    {gpr_to_vector,         "G2F"},
    {gpr_insert,            "G2F FP12",          {},           2},
    {gpr_insert_load,       "FP0123"},
    {gpr_extract,           "FP45+RD01"},
    {gpr_extract_store,     "-"},
    {gpr_broadcast,         "G2F"},
    {gpr_alu,               "ALU012345",         {},           1},
    {gpr_carry,             "ALU012345",         {},           1},
    {gpr_count,             "ALU012345",         {},           1},
    {gpr_trailing_zeros,    "ALU012",            {},           1},
    {gpr_bits,              "ALU012",            {},           1},
    {gpr_extract_bits,      "ALU012",            {},           1},
    {gpr_exchange,          "ALU012345*0 ALU012345*0"},  // renamed: two slots of the front end
    {gpr_flags_read,        "ALU345",            {},           1},
    {gpr_set,               "ALU012345",         {},           1},
    {gpr_shift,             "ALU012",            {},           1},
    {gpr_multiply,          "ALU012",            {},           3},
    {gpr_deposit,           "ALU012",            {},           3},
    {gpr_divide,            "ALU0*6"},   // small numbers; large ones take longer
    {jump,                  "ALU345"},
    {control_register,      "FP45*27"},  // stmxcsr and ldmxcsr: 27 together
    {zero_upper,            "FP45@1"},
};
// clang-format on

}  // namespace

constexpr PortCore zen5_ports = {
    .name = "Zen 5",
    .ports = ports,
    .load = {.gpr = {1.0 / 4},
             .mask = {.all = 1.0 / 4, .wide = 0.5},
             .vector = {.all = 1.0 / 4, .wide = 0.5},
             .vector_512 = {.all = 1.0 / 2, .wide = 0.5}},
    .store = {.gpr = 0.5, .mask = 0.5, .vector = 0.5, .vector_512 = 1},
    .stored_vector = notation::form(ports, "FP45+RD01", 0),
    .stored_mask = notation::form(ports, "FP45", 0),
    .gather_element = 5.64 / 8,  // vpgatherdd ymm
    .width = 8,
    .fuses_moves = true,
    .costs = notation::table_of(ports, rows),
};

}  // namespace castor::jit
