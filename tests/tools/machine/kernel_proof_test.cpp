// SPDX-License-Identifier: Apache-2.0
// Elementwise golden kernels proved from their machine code: each element that they store is what
// the lane program computes of the elements at its index, and each address is inside its tensor,
// for every length. --long: every count of elements after whole iterations, and the kernels whose
// queries take z3 minutes.
#include <gtest/gtest.h>

#include "tests/support/golden_proof.hpp"

namespace castor::test {
namespace {

/// A kernel that is not proved, and what the error says.
struct Unproved {
  std::string_view listing;
  std::string_view error;
};
constexpr Unproved unproved[] = {
    {"fused-dequantize-by-row.avx512_vbmi", "no layout of periods"},
    {"fused-encoded-blocks.avx512_vbmi", "no layout of periods"},
    {"fused-normalize-by-channel.avx2", "no layout of periods"},
    {"fused-quantize-linear.avx512_vbmi", "no meaning of the lane operation"},
    {"fused-scale-minimum.avx512_fp16", "no layout of periods"},
    {"fused-scaled-codes.avx512_vbmi", "no layout of periods"},
    {"look-up-by-channel.avx2", "no meaning of the lane operation"},
    {"look-up-u8-to-f16.avx512", "no meaning of the lane operation"},
    {"look-up-u8-to-u8.avx512_vbmi", "no meaning of the lane operation"},
};

/// A kernel of which only the lengths that are run are proved: its loops are within tiles.
constexpr std::string_view of_some_lengths[] = {"u2-to-u3-bitwise.avx2"};

/// Kernels with hundreds of queries, as their elements share instructions' lanes: --long.
constexpr std::string_view slow[] = {
    "f16-to-f8e5m2.avx512_fp16", "f32-to-f8e4m3.avx512_vbmi",
    "f32-to-nf4.avx512_vbmi",    "f32-to-u4.avx512_vbmi",
    "i16-to-f4e2m1.avx512_fp16", "nf4-to-bf16.avx2",
    "u1-to-f16.avx512_vbmi",     "u3-split-to-u3.avx512_vbmi",
    "u3-to-u8.avx512",           "u4-to-i4.avx2",
    "u4-to-i4.avx512_vbmi",
};

std::vector<std::filesystem::path> elementwise_listings() {
  std::vector<std::filesystem::path> some;
  for (const auto& file : listing_files()) {
    const auto kernel = read_golden_kernel(text_of_file(file));
    if (!kernel.ok()) continue;
    const auto codes = elementwise_codes(*kernel);
    const bool is_left = !long_form() && std::ranges::count(slow, file.stem().string()) > 0;
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

class KernelProof : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(KernelProof, StoresWhatTheLaneProgramComputes) {
  const std::string listing = GetParam().stem().string();
  const auto kernel = read_golden_kernel(text_of_file(GetParam()));
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  const auto codes = elementwise_codes(*kernel);
  ASSERT_TRUE(codes.ok()) << codes.error().to_string();
  const auto* const left = std::ranges::find(unproved, listing, &Unproved::listing);
  int proved = 0;
  for (const GoldenCode& each : *codes) {
    prove::NestProver prover({each.made.nest, each.made.form, each.code}, ask_solver, takes_tail);
    const auto proof = prover.prove();
    const prove::NestProof& counts = prover.proof();
    fmt::print(
        "{}: {}; {} runs, {} elements, {} terms equal, {} queries, {} undecided, {:.2f} s{}\n",
        listing, proof.ok() ? "proved" : proof.error().to_string(), counts.runs, counts.elements,
        counts.same, counts.queries, counts.undecided, counts.seconds,
        counts.every_length ? "" : "; some lengths: " + counts.not_every_length_because);
    if (left != std::end(unproved) && !proof.ok()) {
      EXPECT_NE(proof.error().message.find(left->error), std::string::npos)
          << proof.error().message;
      continue;
    }
    ASSERT_TRUE(proof.ok()) << proof.error().to_string();
    ++proved;
    EXPECT_EQ(counts.undecided, 0u);
    const bool is_partial = std::ranges::count(of_some_lengths, listing) > 0;
    EXPECT_EQ(counts.every_length, !is_partial) << counts.not_every_length_because;
  }
  const auto all = std::ssize(*codes);
  EXPECT_EQ(proved, left == std::end(unproved) ? all : all - 1);
}

INSTANTIATE_TEST_SUITE_P(Golden, KernelProof, testing::ValuesIn(elementwise_listings()), test_name);

}  // namespace
}  // namespace castor::test
