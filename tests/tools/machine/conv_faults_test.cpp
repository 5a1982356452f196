// SPDX-License-Identifier: Apache-2.0
// Faults planted in the machine code of packers and convolutions: the proof of each must fail.
#include <gtest/gtest.h>

#include "tests/support/code_faults.hpp"
#include "tests/support/golden_conv_proof.hpp"

namespace castor::test {
namespace {

constexpr std::string_view wrong_layout = "is not what the packed layout has there";
constexpr std::string_view wrong_sum = "is not the sum of products";
constexpr std::string_view wrong_epilogue = "is not the epilogue of its sum";

const PlantedFault rows[] = {
    {"order_of_packed_bytes", "pack-input.avx512_vnni", pool_bit(0x4), wrong_layout},
    {"channel_of_a_k_group", "pack-input.avx512_vnni", immediate("vinserti32x4", 0x3, 1),
     wrong_layout},
    {"no_mask_of_packed_lanes", "pack-input.avx512_vnni",
     other_mask("vmovdqu32", ZYDIS_REGISTER_K1, 2), ""},
    {"padding_that_is_read", "pack-input-columns4.avx512_vbmi",
     other_mask("vpblendmb", ZYDIS_REGISTER_K2), ""},
    // The step is another one's, which has the same value in all calls of numbers.
    {"step_of_k_groups", "pack-input-columns4.avx512_vbmi", displacement("add", 0x10 - 0x28, 6),
     "in any iteration, "},
    {"count_of_32_bits", "pack-input.avx512_vnni", without_rex_w("dec", 1), "in any iteration, "},
    {"row_of_padding_that_is_read", "pack-input-im2col-2x3.avx512_vbmi", never_taken("jz", 1),
     "in any iteration, "},
    {"units_of_32_bits", "pack-weights-9.avx512_vbmi", without_rex_w("dec"), "in any iteration, "},
    {"tiles_of_32_bits", "conv-pixels-dead-lanes.avx512_vnni", without_rex_w("mov", 1),
     "at the loop's begin"},
    {"k_steps_of_32_bits", "conv-pixels-dead-lanes.avx512_vnni", without_rex_w("mov", 3),
     "in any iteration, "},
    {"tap_of_a_receptive_field", "pack-input-im2col-2x3.avx512_vbmi", pool_bit(0x1), wrong_layout},
    {"exchange_of_slots", "pack-weights-9.avx512_vbmi",
     other_mask("vmovdqa32", ZYDIS_REGISTER_K2, 1), wrong_layout},
    {"sum_of_other_weights", "pack-weights-2x1.avx512_vbmi", swapped_sources("vpdpbusd", 2, 3),
     wrong_layout},
    {"signs_of_a_product", "conv-1x2-exchanged.avx512_vnni", swapped_sources("vpdpbusd", 2, 3),
     wrong_sum},
    {"product_of_words", "conv-pixels-dead-lanes.avx512_vnni",
     other_mnemonic("vpdpbusd", ZYDIS_MNEMONIC_VPDPWSSD), wrong_sum},
    {"weight_of_the_next_channel", "conv-channels-48x7-sign-flip.avx512_vnni",
     displacement("vmovups", 1, 4), ""},
    {"sign_flip_of_another_bit", "conv-channels-48x7-sign-flip.avx512_vnni", pool_bit(0, 6),
     wrong_sum},
    {"order_of_a_transposition", "conv-channels-5x4-transposed.avx512",
     other_mnemonic("vpunpckldq", ZYDIS_MNEMONIC_VPUNPCKHDQ), wrong_sum},
    {"zero_point_that_is_added", "conv-tiles-20x2x7-window-sums.amx",
     other_mnemonic("vpsubd", ZYDIS_MNEMONIC_VPADDD), wrong_sum},
    {"tile_of_unsigned_weights", "conv-tiles-16x7x7-one-line.amx",
     other_mnemonic("tdpbusd", ZYDIS_MNEMONIC_TDPBUUD), wrong_sum},
    {"bound_of_an_epilogue", "epilogue-channels-u8.avx512_vbmi", pool_bit(0x82), wrong_epilogue},
    {"order_of_packed_results", "epilogue-channels-u8.avx512_vbmi", pool_bit(0x44), ""},
    {"rounding_of_an_epilogue", "epilogue-full-u8.avx512_vnni",
     other_mnemonic("vcvttps2dq", ZYDIS_MNEMONIC_VCVTPS2DQ), wrong_epilogue},
    {"sign_of_packed_results", "epilogue-depthwise-rows-u8.avx512_vbmi",
     other_mnemonic("vpackuswb", ZYDIS_MNEMONIC_VPACKSSWB), wrong_epilogue},
    {"no_mask_of_a_residual", "epilogue-tile-dead-lanes-residual.avx512",
     other_mask("vmovdqu32", ZYDIS_REGISTER_K0), "reads"},
    {"no_mask_of_results", "epilogue-grouped-pixels-residual.avx512",
     other_mask("vmovdqu32", ZYDIS_REGISTER_K2, 2), ""},
};

class ConvFault : public testing::TestWithParam<PlantedFault> {};

TEST_P(ConvFault, IsFound) {
  const PlantedFault& row = GetParam();
  auto made =
      golden_conv_kernel(golden_folder() / "listings" / (std::string(row.listing) + ".txt"));
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  expect_found(row, made->code, [&] { return prove_golden(*made); });
}

INSTANTIATE_TEST_SUITE_P(Planted, ConvFault, testing::ValuesIn(rows), name_of_fault);

}  // namespace
}  // namespace castor::test
