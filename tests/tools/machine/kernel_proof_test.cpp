// SPDX-License-Identifier: Apache-2.0
// Elementwise golden kernels proved from their machine code: each element that they store is what
// the lane program computes of the elements at its index, and each address is inside its tensor,
// for every length. --long: every count of elements after whole iterations, and the kernels that
// take long.
#include <gtest/gtest.h>

#include "tests/support/golden_proof.hpp"

namespace castor::test {
namespace {

/// A kernel that divides out of line where a quotient is near a half: a jump that depends on data;
/// and one that folds NaNs into opmasks, of which the model of partial results knows nothing.
constexpr std::string_view unproved[] = {"fused-dynamic-quantize.avx512_vbmi",
                                         "reduce-range-of-floats.avx512_vbmi"};

/// Kernels of which iterations are long, or queries are decided for each code of a source, one
/// after another: --long.
constexpr std::string_view slow[] = {
    "fused-encoded-blocks.avx512_vbmi", "fused-scaled-codes.avx512_vbmi",
    "fused-scaled-nibbles.avx512_vbmi", "u3-split-to-u3.avx2", "u3-split-to-u3.avx512_vbmi"};

std::vector<std::filesystem::path> elementwise_listings() {
  std::vector<std::filesystem::path> some;
  for (const auto& file : listing_files()) {
    const auto kernel = read_golden_kernel(text_of_file(file));
    if (!kernel.ok()) continue;
    const auto codes = elementwise_codes(*kernel);
    const std::string name = file.stem().string();
    const bool is_left = std::ranges::count(unproved, name) > 0 ||
                         (!long_form() && std::ranges::count(slow, name) > 0);
    if (codes.ok() && !codes->empty() && !is_left) some.push_back(file);
  }
  return some;
}

std::string test_name(const testing::TestParamInfo<std::filesystem::path>& row) {
  std::string name = row.param.stem().string();
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

/// Codes with the numbers of the elements that operands inside a byte begin with.
std::vector<std::pair<const GoldenCode&, int64_t>> with_first_elements(
    const std::vector<GoldenCode>& codes) {
  std::vector<std::pair<const GoldenCode&, int64_t>> all;
  for (const GoldenCode& code : codes) {
    const bool is_bitwise = code.made.form.has(jit::Access::bitwise);
    for (const int64_t first : {3, 2, 0, 1, 4}) {
      const bool is_taken = long_form() ? is_bitwise : is_bitwise && first == 2;
      if (first == 3 || is_taken) all.emplace_back(code, first);
    }
  }
  return all;
}

class KernelProof : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(KernelProof, StoresWhatTheLaneProgramComputes) {
  const std::string listing = GetParam().stem().string();
  const auto kernel = read_golden_kernel(text_of_file(GetParam()));
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  const auto codes = elementwise_codes(*kernel);
  ASSERT_TRUE(codes.ok()) << codes.error().to_string();
  for (const auto& [each, first] : with_first_elements(*codes)) {
    prove::NestSubject subject = each.subject();
    subject.first = first;
    prove::NestProver prover(subject, ask_solver, takes_tail);
    const auto proof = prover.prove();
    const prove::NestProof& counts = prover.proof();
    fmt::print(
        "{}: {}; {} runs, {} elements, {} terms equal, {} queries, {} undecided, {:.2f} s {}\n",
        listing, proof.ok() ? "proved" : proof.error().to_string(), counts.runs, counts.elements,
        counts.same, counts.queries, counts.undecided, counts.seconds,
        counts.not_every_length_because);
    ASSERT_TRUE(proof.ok()) << proof.error().to_string();
    EXPECT_EQ(counts.undecided, 0u);
    EXPECT_TRUE(counts.every_length) << counts.not_every_length_because;
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, KernelProof, testing::ValuesIn(elementwise_listings()), test_name);

}  // namespace
}  // namespace castor::test
