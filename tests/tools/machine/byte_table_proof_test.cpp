// SPDX-License-Identifier: Apache-2.0
// The golden kernel that looks bytes up is proved from its machine code, and planted faults are
// found.
#include "tools/prove/kernel/byte_table_proof.hpp"

#include <gtest/gtest.h>

#include "tests/support/code_faults.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/golden_kernel.hpp"

namespace castor::test {
namespace {

Result<MachineCode> golden_code() {
  const auto file = golden_folder() / "listings" / "requantize-table.avx512_vbmi.txt";
  const auto kernel = read_golden_kernel(text_of_file(file));
  if (!kernel) return kernel.error();
  return emit_golden_spec(*kernel);
}

TEST(ByteTableProof, EachByteIsItsEntry) {
  const auto code = golden_code();
  ASSERT_TRUE(code.ok()) << code.error().to_string();
  const auto bytes = prove::prove_byte_table(*code);
  ASSERT_TRUE(bytes.ok()) << bytes.error().to_string();
  EXPECT_GT(*bytes, 4000u);
}

TEST(ByteTableProof, FaultsAreFound) {
  const Fault faults[] = {displacement("vmovdqu64", 1, 1), displacement("vmovdqu64", 1, 5),
                          swapped_sources("vpermi2b", 2, 3),
                          other_mask("vpermi2b", ZYDIS_REGISTER_K1),
                          other_mask("vmovdqu8", ZYDIS_REGISTER_K0)};
  for (const Fault& plant : faults) {
    auto code = golden_code();
    ASSERT_TRUE(code.ok()) << code.error().to_string();
    const std::vector<std::byte> before = code->bytes;
    plant(*code);
    ASSERT_NE(code->bytes, before) << "nothing is planted";
    const auto bytes = prove::prove_byte_table(*code);
    ASSERT_FALSE(bytes.ok()) << "the proof holds";
    EXPECT_EQ(bytes.error().code, ErrorCode::internal) << bytes.error().message;
  }
}

}  // namespace
}  // namespace castor::test
