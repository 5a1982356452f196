// SPDX-License-Identifier: Apache-2.0
// Generated code as text: listings of chosen kernels, and a digest of every pair of types. What the
// listings of microkernels and fused functions must show: golden_switches_test.cpp. The digest of
// these: golden_kernels_test.cpp.
//
// The texts are in tests/data/golden/, whose README says how to read them and how to add one. When
// a change of generated code is meant, rewrite them and look at the difference in review:
//   CASTOR_REWRITE_GOLDEN=1 build/release/tests/jit_golden_tests
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ir/types/convert_options.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/digest.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/golden_kernel.hpp"

namespace castor::test {
namespace {

std::string test_name(const testing::TestParamInfo<std::filesystem::path>& row) {
  std::string name = row.param.stem().string();
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

class GoldenListing : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(GoldenListing, IsWhatIsGenerated) {
  const auto kernel = read_golden_kernel(text_of_file(GetParam()));
  ASSERT_TRUE(kernel.ok()) << GetParam() << ": " << kernel.error().to_string();
  const Result<std::string> text = golden_text(*kernel);
  ASSERT_TRUE(text.ok()) << GetParam() << ": " << text.error().to_string();
  expect_golden(GetParam(), *text);
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenListing, testing::ValuesIn(listing_files()), test_name);

constexpr const char* digest_head =
    R"(# `convert` with default options, dense operands. In each tier's column: bytes of code and
# constants, instructions, spills, and the port model's cycles of the main loop per 64 bytes
# written with what limits it (l load, s store, p pipes, f front end), or "-" where the loop has
# f16 lanes: the model of the generic core is Zen 4's, which has none. "=" is the very code of the
# tier to the left.
)";

TEST(GoldenDigest, IsWhatIsGenerated) {
  const Result<std::string> digest = digest_text(all_element_types());
  ASSERT_TRUE(digest.ok()) << digest.error().message;
  expect_golden(golden_folder() / "digest.txt", digest_head + *digest);
}

// ---- what the chosen kernels must show

/// The family of a conversion, as the listings are chosen by.
std::string family_of(ElementType from, ElementType to, const ConvertOptions& options) {
  if (from == to) return "same type";
  if (is_boolean(to)) return "to boolean";
  if (is_boolean(from)) return "from boolean";
  const bool saturates = options.overflow == Overflow::saturate;
  if (is_whole(from) && is_whole(to)) {
    return saturates ? "integer to integer, saturate" : "integer to integer, wrap";
  }
  if (is_whole(from)) return "integer to float";
  if (!is_whole(to)) return saturates ? "float to float, saturate" : "float to float";
  if (options.overflow == Overflow::wrap) return "float to integer, wrap";
  return "float to integer " + std::string(rounding_names[static_cast<size_t>(options.rounding)]);
}

/// Everything that one kernel shows.
std::set<std::string> families_of(const GoldenKernel& kernel) {
  std::set<std::string> families;
  if (kernel.spec || kernel.is_likely) return {};  // see golden_switches_test.cpp
  if (!kernel.function) return {"spills"};
  for (const Operation& operation : kernel.function->operations) {
    if (operation.op != OpKind::convert) continue;
    const ElementType from = kernel.function->type_of(operation.operands[0]).element;
    const ElementType to = kernel.function->type_of(operation.results[0]).element;
    families.insert(family_of(from, to, canonical_options(from, to, convert_options(operation))));
  }
  if (kernel.function->results.size() > 1) families.insert("several results");
  if (kernel.form.rank >= 3) families.insert("three loops");
  if (kernel.form.stores == jit::Stores::streaming) families.insert("streaming stores");
  if (std::ranges::count(kernel.form.access, jit::Access::strided) > 0) families.insert("strided");
  return families;
}

TEST(GoldenListings, ShowEveryFamilyAndTier) {
  std::set<std::string> missing = {"same type",
                                   "to boolean",
                                   "from boolean",
                                   "integer to integer, wrap",
                                   "integer to integer, saturate",
                                   "integer to float",
                                   "float to float",
                                   "float to float, saturate",
                                   "float to integer, wrap",
                                   "float to integer ",
                                   "float to integer nearest_even",
                                   "float to integer nearest_away",
                                   "float to integer down",
                                   "float to integer up",
                                   "float to integer half_up",
                                   "several results",
                                   "three loops",
                                   "strided",
                                   "streaming stores",
                                   "spills"};
  std::map<jit::Tier, int> files_of_tier;
  for (const auto& file : listing_files()) {
    const auto kernel = read_golden_kernel(text_of_file(file));
    ASSERT_TRUE(kernel.ok()) << file << ": " << kernel.error().to_string();
    for (const std::string& family : families_of(*kernel)) missing.erase(family);
    ++files_of_tier[kernel->target.tier];
  }
  EXPECT_TRUE(missing.empty()) << "no listing shows: " << *missing.begin();
  EXPECT_EQ(files_of_tier.size(), size_t{jit::tier_count});
  EXPECT_GE(listing_files().size(), 40u);
}

TEST(GoldenListings, StaySmallEnoughToReview) {
  uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(golden_folder())) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  EXPECT_LT(bytes, 25u << 16);
}

// ---- the comparison itself

TEST(GoldenComparison, ShowsTheLinesThatDiffer) {
  EXPECT_EQ(short_difference("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\nE\nE2\nf\n"),
            "line 5:\n  c\n  d\n- e\n+ E\n+ E2\n");
  EXPECT_EQ(short_difference("a\nb\nc\nd\ne\n", "b\nc\nD\ne\n"),
            "line 1:\n- a\nline 4:\n  b\n  c\n- d\n+ D\n");
  EXPECT_EQ(short_difference("", "a\n"), "line 1:\n+ a\n");
  EXPECT_EQ(short_difference("a\na\n", "a\n"), "line 2:\n  a\n- a\n");
  EXPECT_EQ(short_difference("same\n", "same\n"), "");
}

TEST(GoldenComparison, CutsLongOnesShort) {
  std::string many;
  for (int i = 0; i < 200; ++i) many += fmt::format("{}\n", i);
  EXPECT_TRUE(short_difference("a\n", many).ends_with("+ 5\n+ .. 194 more lines\n"));
  std::string others = many;
  for (int i = 9; i < 199; i += 10) others.replace(others.find(fmt::format("\n{}\n", i)), 2, "\nx");
  EXPECT_TRUE(short_difference(many, others).ends_with("and 15 more differences\n"))
      << short_difference(many, others);
}

TEST(GoldenKernel, RefusesWrongHeads) {
  const std::string function = "func @f(%x: u8[2]) -> (u8[2]) {\n  return %x\n}\n----\n";
  const std::pair<std::string, std::string> rows[] = {
      {function, "no tier"},
      {"// tier: avx3\n" + function, "'tier: avx3', expected a tier"},
      {"// tier: avx2\n// loops: none\n" + function, "'loops: none'"},
      {"// tier: avx2\n// access: sideways\n" + function, "'access: sideways'"},
      {"// tier: avx2\n// stores: slow\n" + function, "'stores: slow'"},
      {"// tier: avx2\n// teir: avx2\n" + function, "expected one of the keys"},
      {"// tier: avx2\nfunc @f(\n----\n", "found"},
      {"// tier: avx2\n// form: dense\n" + function, "'form: dense', expected likely"},
      {"// tier: avx2\n// blocks: outputs=1\n----\n", "a kernel that the blocks are of"},
      {"// tier: avx2\n// kernel: pixels\n----\n", "'pixels' is no kind of kernel"},
      {"// tier: avx2\n// kernel: depthwise lanes\n----\n", "'lanes' is no field of depthwise"},
      {"// tier: avx2\n// kernel: depthwise adds=1\n----\n", "'adds=1' is no field"},
      {"// tier: avx2\n// kernel: depthwise k_groups\n----\n", "'k_groups' is no field"},
      {"// tier: avx2\n// kernel: depthwise k_groups=2x\n----\n", "'k_groups=2x' is no field"},
      {"// tier: avx2\n// kernel: pack_input\n// blocks: outputs=1\n----\n",
       "'blocks' is no field of pack_input"},
      {"// tier: avx2\n// kernel: depthwise\n// blocks: outputs=1, rows=2\n----\n",
       "'rows=2' is no field of depthwise block"},
  };
  for (const auto& [text, message] : rows) {
    const auto kernel = read_golden_kernel(text);
    ASSERT_FALSE(kernel.ok()) << text;
    EXPECT_NE(kernel.error().message.find(message), std::string::npos) << kernel.error().message;
  }
  const auto kernel = read_golden_kernel("// tier: avx2\n// access: strided\n" + function);
  ASSERT_TRUE(kernel.ok());
  EXPECT_FALSE(golden_text(*kernel).ok()) << "one access class for two operands";
}

TEST(GoldenKernel, RefusesKernelsThatTheTierLacks) {
  const std::string epilogue =
      "func @f(%x: u8[?n, 4, 5], %w: i8[8, 4, 1]) -> (f32[?n, 8, 5]) {\n"
      "  %y = conv_integer %x, %w\n  %z = convert %y : f32\n  return %z\n}\n";
  const std::pair<std::string, std::string> rows[] = {
      {"// tier: avx2\n// kernel: depthwise\n----\n", "avx2 has no such depthwise"},
      {"// tier: avx2\n// kernel: dense engine=i16_pairs channels=15\n----\n", "has no such"},
      {"// tier: avx512\n// kernel: byte_table\n----\n", "avx512 has no such byte_table"},
      {"// tier: avx2\n// kernel: dense engine=i16_pairs\n" + epilogue,
       "an epilogue that kernels apply"},
      {"// tier: avx512_vnni\n// kernel: pack_input\n" + epilogue, "takes no epilogue"},
      {"// tier: avx512\n// kernel: dense engine=i16_pairs\n"
       "func @f(%x: u8[2]) -> (u8[2]) {\n  return %x\n}\n----\n",
       "an epilogue that kernels apply"},
  };
  for (const auto& [text, message] : rows) {
    const auto kernel = read_golden_kernel(text);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    const auto listed = golden_text(*kernel);
    ASSERT_FALSE(listed.ok()) << text;
    EXPECT_NE(listed.error().message.find(message), std::string::npos) << listed.error().message;
  }
}

}  // namespace
}  // namespace castor::test
