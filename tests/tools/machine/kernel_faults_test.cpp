// SPDX-License-Identifier: Apache-2.0
// Faults planted in the machine code of golden kernels: the proof of each must fail.
#include <gtest/gtest.h>

#include "tests/support/code_faults.hpp"
#include "tests/support/golden_proof.hpp"

namespace castor::test {
namespace {

constexpr std::string_view wrong_element = "is not what the lane program computes";

const PlantedFault rows[] = {
    {"table_byte_in_the_pool", "f8e4m3-to-f32.avx512_vbmi", pool_bit(0x43), wrong_element},
    {"constant_of_rounding", "f32-to-bf16.avx2", pool_bit(0x8), wrong_element},
    {"bound_of_a_clamp", "f32-to-u8.avx2", pool_bit(6), wrong_element},
    {"index_of_a_permutation", "f32-to-u8.avx2", pool_bit(0x24), wrong_element},
    {"immediate_of_a_permutation", "u64-to-i16-saturate.avx2", immediate("vpermq", 0x0c),
     wrong_element},
    {"immediate_of_a_shuffle", "u64-to-i16-saturate.avx2", immediate("vshufps", 0x10),
     wrong_element},
    {"sign_of_a_pack", "f32-to-u8.avx512_vbmi",
     other_mnemonic("vpackuswb", ZYDIS_MNEMONIC_VPACKSSWB), wrong_element},
    {"swapped_operands_of_a_pack", "f32-to-u8.avx512_vbmi", swapped_sources("vpackuswb", 2, 3),
     wrong_element},
    {"swapped_operands_of_a_minimum", "f32-to-u8.avx512_vbmi", swapped_sources("vminps", 2, 3),
     wrong_element},
    {"rounding_for_truncation", "f32-to-u8.avx512_vbmi",
     other_mnemonic("vcvttps2dq", ZYDIS_MNEMONIC_VCVTPS2DQ), wrong_element},
    {"no_mask_of_the_last_store", "f32-to-u8.avx512_vbmi",
     other_mask("vmovdqu8", ZYDIS_REGISTER_K0), "writes"},
    {"no_mask_of_the_last_load", "f32-to-f16.avx512_vbmi",
     other_mask("vmovdqu32", ZYDIS_REGISTER_K0), "reads"},
    {"load_one_vector_too_far", "f32-to-u8.avx512_vbmi", displacement("vmovups", 1, 4), "reads"},
    {"store_one_byte_too_far", "i8-to-i64.avx2", displacement("vmovups", 1, 2), "is not stored"},
    {"loop_that_ends_late", "f32-to-u8.avx2", displacement("lea", 1), "reads"},
    {"count_of_the_last_chunk", "f32-to-f16.avx512_vbmi",
     other_mnemonic("cmovnle", ZYDIS_MNEMONIC_CMOVL), ""},
    {"rounding_mode_of_mxcsr", "f32-to-i32-nearest_even.avx512", pool_bit(1, 5), wrong_element},
    {"element_of_a_period", "fused-normalize-by-channel.avx2", displacement("vmovups", 4, 3),
     wrong_element},
    {"step_within_a_period", "fused-normalize-by-channel.avx2",
     other_mnemonic("cmovns", ZYDIS_MNEMONIC_CMOVS), ""},
    {"scale_of_the_next_period", "fused-dequantize-by-row.avx512_vbmi",
     displacement("vpbroadcastd", 1, 1), wrong_element},
    {"quarters_of_a_table", "look-up-u8-to-u8.avx512_vbmi", swapped_sources("vpermi2b", 2, 3),
     wrong_element},
    {"table_of_the_next_element", "look-up-by-channel.avx2", displacement("vpinsrd", 4, 1),
     wrong_element},
    {"range_of_scales", "fused-scaled-codes.avx512_vbmi", pool_bit(0x303), wrong_element},
    {"sign_of_a_zero_point", "fused-quantize-linear.avx512_vbmi",
     other_mnemonic("vpaddd", ZYDIS_MNEMONIC_VPSUBD, 1), wrong_element},
    {"shift_of_a_slice", "requantize-fx16-to-fx8-embarc.avx2",
     other_mnemonic("vpsravd", ZYDIS_MNEMONIC_VPSRLVD), wrong_element},
    {"bits_after_the_last_element", "u2-to-u3-bitwise.avx2",
     other_mnemonic("or", ZYDIS_MNEMONIC_MOV, 2), "bits between elements"},
    {"bits_of_an_element_before", "u2-to-u3-bitwise.avx2",
     other_mnemonic("not", ZYDIS_MNEMONIC_NEG), wrong_element},
    {"minimum_for_a_maximum", "reduce-max-abs-rows.avx512",
     other_mnemonic("vpmaxub", ZYDIS_MNEMONIC_VPMINUB, 2), "is not the fold"},
    {"half_of_a_result", "reduce-max-abs-rows.avx512", immediate("vpsrldq", 0x0c),
     "is not the fold"},
    {"elements_of_another_sum", "reduce-sum.avx2", displacement("vpmovzxwd", 0x10, 1),
     "is not the fold"},
    {"chunk_that_is_read_twice", "reduce-max-abs-rows.avx512", displacement("vmovups", -1, 1),
     "is not the fold"},
    {"accumulator_that_is_lost", "reduce-max-columns.avx2", swapped_sources("vblendvpd", 1, 2),
     "is not the fold"},
    {"registers_restored_from_other_slots", "fused-select-scale.avx2_vnni", swapped_pops(),
     "returns"},
};

class KernelFault : public testing::TestWithParam<PlantedFault> {};

TEST_P(KernelFault, IsFound) {
  const PlantedFault& row = GetParam();
  const auto file = golden_folder() / "listings" / (std::string(row.listing) + ".txt");
  const auto kernel = read_golden_kernel(text_of_file(file));
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  auto codes = elementwise_codes(*kernel);
  ASSERT_TRUE(codes.ok() && !codes->empty());  // the first one is meant
  GoldenCode& each = codes->front();
  expect_found(row, each.code,
               [&] { return prove::NestProver(each.subject(), ask_solver, takes_tail).prove(); });
}

INSTANTIATE_TEST_SUITE_P(Planted, KernelFault, testing::ValuesIn(rows), name_of_fault);

}  // namespace
}  // namespace castor::test
