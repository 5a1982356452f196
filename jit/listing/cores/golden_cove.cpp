// SPDX-License-Identifier: Apache-2.0
// Golden Cove as servers have it (Sapphire and Emerald Rapids), and Redwood Cove (Granite Rapids).
//
// How long: throughputs and latencies of InstLatx64 (GenuineIntel0090672_AlderLake_01_BC_AVX512,
// the client's core with AVX-512 and AVX512-FP16 enabled; Redwood Cove: 00A06A4_MeteorLake_10_BC).
// Where: LLVM's scheduling model of Sapphire Rapids (X86SchedSapphireRapids.td, which is made of
// uops.info's measurements of Alder Lake), named as uops.info names ports.
//
// Servers have a second 512-bit unit for products and float arithmetic on port 5, which the client
// and thus LLVM's model lack: forms of 512 bits that LLVM's models of server cores before it have
// on ports 0 and 5 (X86SchedSkylakeServer.td, X86SchedIceLake.td) have them here too. castor's own
// figures on an Emerald Rapids show it: 1.74 vpdpbusd zmm a cycle over whole layers
// (bench/results/intel-xeon-emerald-rapids.md), where one port does at most 1.
//
// Loads and stores, and addresses, have ports of their own (2, 3, 4, 7, 8, 9, 11): three loads a
// cycle, of which two may be of 512 bits (Intel's Optimization Reference Manual), and two
// stores of up to 256 bits or one of 512.
// "DIV" is the divider, which is not pipelined.
#include "jit/listing/port_notation.hpp"

namespace castor::jit {
namespace {

using enum Cost;

constexpr std::string_view ports[] = {"p0", "p1", "p5", "p6", "p10", "DIV"};

// clang-format off
constexpr CoreRow rows[] = {
    // class                up to 256 bits       512 bits             latencies
    {masked_load,           "-"},
    {masked_store,          "-"},
    {vector_alu,            "p015",              "p05",               1, 1},
    {ternary_logic,         "p015",              "p05",               1, 1},
    {vector_min_max,        "p01",               "p0",                1, 1},
    {vector_min_max_64,     "p5",                "p5",                3, 3},
    {vector_equal_64,       "p01",               "p0",                1, 1},
    {vector_greater_64,     "p5",                "p5",                3, 3},
    {vector_saturate,       "p01",               "p0",                1, 1},
    {vector_average,        "p01",               "p0",                1, 1},
    {vector_count_bits,     "p5",                "p5",                3, 3},
    {vector_count_zeros,    "p01",               "p05",               4, 4},
    {vector_shuffle,        "p15",               "p5",                1, 1},
    {vector_shuffle_32,     "p15",               "p5",                1, 1},
    {vector_shuffle_float,  "p15",               "p5",                1, 1},
    {vector_align,          "p5",                "p5",                1, 1},
    {vector_pack,           "p5",                "p5",                3, 3},
    {vector_unpack,         "p15",               "p5",                1, 1},
    {vector_permute,        "p5",                "p5",                3, 3},
    {vector_permute_16,     "p01 p5",            "p0 p5",             4, 4},
    {vector_permute_two,    "p5",                "p5",                3, 3},
    {vector_permute_two_16, "p5*2 p015",         "p5*2 p05",          7, 7},
    {vector_permute_two_8,  "p5*2 p015",         "p5*2 p05",          5, 5},
    {vector_widen,          "p5",                "p5",                3, 3},
    {vector_narrow,         "p5 p15",            "p5*2",              4, 4},
    {vector_insert,         "p5",                "p5",                3, 3},
    {vector_insert_load,    "p015",              "p05",               1, 1},
    {vector_extract,        "p5",                "p5",                3, 3},
    {vector_extract_store,  "-"},
    {vector_broadcast,      "p5",                "p5",                3, 3},
    {vector_broadcast_load, "p5",                "p5"},
    {vector_broadcast_lanes, "-"},
    {vector_expand,         "p5*2",              "p5*2",              3, 3},
    {vector_shift,          "p01",               "p0",                1, 1},
    {vector_shift_bytes,    "p15",               "p5",                1, 1},
    {vector_rotate,         "p01",               "p0",                1, 1},
    {vector_multiply,       "p01",               "p05",               5, 5},
    {vector_multiply_32,    "p01 p01",           "p05 p05",           10, 10},
    {vector_multiply_64,    "p01 p01 p01",       "p05 p05 p05",       15, 15},
    {vector_sad,            "p5",                "p5",                3, 3},
    {vector_horizontal,     "p15 p15 p015",      "p5*2 p05",          2, 2},
    {float_horizontal,      "p5*2 p15",          "p5*2 p05",          5, 5},
    {vector_multishift,     "p5",                "p5",                3, 3},
    {vector_affine,         "p01",               "p05",               3, 3},
    {vector_test,           "p0 p5"},
    {dot_product,           "p01",               "p05",               5, 5},
    {blend_by_vector,       "p015 p015 p015",    {},                  3},
    {blend_floats_by_vector, "p015 p015 p015",   {},                  3},
    {blend_floats,          "p015",              {},                  1},
    {blend_words,           "p15",               {},                  1},
    {float_multiply,        "p01",               "p05",               4, 4},
    {float_fused,           "p01",               "p05",               4, 4},
    {float_estimate,        "p0",                "p0*2 p05",          4, 6},
    {float_add,             "p15",               "p05",               2, 3.4},
    {float_compare,         "p01",               "p05",               4, 4},
    {float_fixup,           "p01",               "p05",               4, 4},
    {float_compare_mask,    "p5",                "p5"},
    {float_compare_flags,   "p0"},
    {float_round,           "p01 p01",           "p05 p05",           8, 8},
    {float_scale,           "p01",               "p05",               4, 4},
    {float_exponent,        "p01",               "p05",               4, 4},
    {float_convert,         "p01",               "p05",               4, 4},
    {float_convert_width,   "p01 p5",            "p05 p5",            7, 7},
    {float_to_bf16,         "p01 p01 p5",        "p05 p5*2",          8, 8},
    {float_to_half,         "p01 p5",            "p05 p5",            8, 8},
    {float_to_gpr,          "p0 p01"},
    {gpr_to_float,          "p5 p01"},
    {divide_f32,            "p0 DIV*5",          "p0*2 p05 DIV*10",   11, 17},
    {divide_f64,            "p0 DIV*8",          "p0*2 p05 DIV*16",   14, 22},
    {sqrt_f32,              "p0 DIV*6",          "p0*2 p05 DIV*12",   12, 19},
    {sqrt_f64,              "p0 DIV*9",          "p0*2 p05 DIV*18",   13, 23},  // 0 and 1; other values take 12 and 24
    {half_arithmetic,       "p01",               "p05",               4, 4},
    {half_compare_mask,     "p5",                "p5"},
    {half_round,            "p01 p01",           "p05 p05",           8, 8},
    {half_convert,          "p01",               "p05",               4, 4},
    {half_convert_32,       "p01 p5",            "p05 p5",            8, 8},  // to f16 of 512 bits: p5 twice, 2.0
    {half_convert_64,       "p01 p5",            "p05 p05 p5",        10, 10},  // 1.35 to 2.05, by the conversion
    {divide_f16,            "p0 DIV*16",         "p0*4 DIV*32",       31, 41},
    {sqrt_f16,              "p0 DIV*18",         "p0*4 DIV*36",       33, 45},
    {mask_compare,          "p5",                "p5"},
    {mask_from_vector,      "p0",                "p0"},
    {mask_to_vector,        "p015",              "p05"},
    {mask_logic,            "p0",                "p0",                1, 1},
    {mask_test,             "p0"},
    {mask_add,              "p5",                "p5",                4, 4},
    {mask_shift,            "p5",                "p5",                4, 4},
    {mask_load,             "p5"},
    {mask_to_gpr,           "p0"},
    {gpr_to_mask,           "p5"},
    {vector_to_gpr,         "p0"},
    {gpr_to_vector,         "p5"},
    {gpr_insert,            "p5 p15"},
    {gpr_insert_load,       "p15"},
    {gpr_extract,           "p0 p15"},
    {gpr_extract_store,     "p15"},
    {gpr_broadcast,         "p5"},
    {gpr_alu,               "p0156|p10",         {},                  1},
    {gpr_carry,             "p06",               {},                  1},
    {gpr_count,             "p1",                {},                  3},
    {gpr_trailing_zeros,    "p1",                {},                  3},
    {gpr_bits,              "p1",                {},                  1},
    {gpr_extract_bits,      "p06 p1",            {},                  2},
    {gpr_exchange,          "p0156|p10 p0156|p10 p0156|p10",  {},     2},
    {gpr_flags_read,        "p06",               {},                  1},
    {gpr_set,               "p06",               {},                  1},
    {gpr_shift,             "p06",               {},                  1},
    {gpr_multiply,          "p1",                {},                  3},
    {gpr_deposit,           "p1",                {},                  3},
    {gpr_divide,            "p1 DIV*6",          {},                  12},  // 32 bits; 64 bits take 10
    {jump,                  "p06"},
    {control_register,      "p06*8"},  // stmxcsr and ldmxcsr 15.9
    {zero_upper,            "-"},
};

/// Redwood Cove multiplies floats in 3 cycles. Else the two measure alike up to 256 bits, which
/// are all that a client's Redwood Cove has; InstLatx64 has no server with one.
constexpr CoreRow redwood_cove_rows[] = {
    {float_multiply,        "p01",               "p05",               3, 3},
};
// clang-format on

constexpr ByAccess<LoadCycles> loads = {.gpr = {1.0 / 3},
                                        .mask = {1.0 / 3},
                                        .vector = {1.0 / 3},
                                        .vector_512 = {.all = 1.0 / 3, .wide = 1.0 / 2}};
constexpr ByAccess<double> stores = {
    .gpr = 1.0 / 2, .mask = 1.0 / 2, .vector = 1.0 / 2, .vector_512 = 1};
constexpr auto golden_cove_costs = notation::table_of(ports, rows);

}  // namespace

constexpr PortCore golden_cove_ports = {
    .name = "Golden Cove",
    .ports = ports,
    .load = loads,
    .store = stores,
    .gather_element = 3.017 / 8,  // vpgatherdd ymm
    .width = 6,
    .has_tiles = true,
    .costs = golden_cove_costs,
};

constexpr PortCore redwood_cove_ports = {
    .name = "Redwood Cove",
    .ports = ports,
    .load = loads,
    .store = stores,
    .gather_element = 3.017 / 8,
    .width = 6,
    .has_tiles = true,
    .costs = notation::with_rows(golden_cove_costs, ports, redwood_cove_rows),
};

}  // namespace castor::jit
