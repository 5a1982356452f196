// SPDX-License-Identifier: Apache-2.0
// Golden kernels of convolutions proved from their machine code: packers put every byte into its
// position, and microkernels store sums of products, or the epilogue's lane program of them,
// whatever the elements are; each address is inside its operand. Counts and steps of packers, and
// counts of k steps and of register tiles without tile registers, are any; others are those of a
// few calls.
#include <gtest/gtest.h>

#include "tests/support/golden_conv_proof.hpp"

namespace castor::test {
namespace {

std::vector<std::filesystem::path> listings_of_convolutions() {
  std::vector<std::filesystem::path> some;
  for (const auto& file : listing_files()) {
    const auto kernel = read_golden_kernel(text_of_file(file));
    if (kernel.ok() && kernel->spec && is_of_convolution(*kernel->spec)) some.push_back(file);
  }
  return some;
}

/// Whether loops are proved for every count: those of packers, and dense ones without tile
/// registers.
bool has_every_count(const KernelSpec& spec) {
  if (const auto* tile = std::get_if<jit::DenseTile>(&spec)) return !tile->has_tiles();
  return std::holds_alternative<jit::PackInput>(spec) ||
         std::holds_alternative<jit::PackWeights>(spec);
}

class ConvProof : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(ConvProof, StoresWhatItsCallsAskFor) {
  const auto made = golden_conv_kernel(GetParam());
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  const auto proof = prove_golden(*made);
  ASSERT_TRUE(proof.ok()) << proof.error().to_string();
  fmt::print("{}: {} calls, {} iterations, {} elements, {} queries, {} undecided\n",
             GetParam().stem().string(), proof->calls, proof->iterations, proof->elements,
             proof->queries, proof->undecided);
  EXPECT_GT(proof->elements, 0u);
  EXPECT_EQ(proof->iterations > 0, has_every_count(*made->kernel.spec));
  EXPECT_EQ(proof->undecided, 0u);
}

std::string test_name(const testing::TestParamInfo<std::filesystem::path>& row) {
  std::string name = row.param.stem().string();
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Golden, ConvProof, testing::ValuesIn(listings_of_convolutions()),
                         test_name);

}  // namespace
}  // namespace castor::test
