// SPDX-License-Identifier: Apache-2.0
// Generated code as text: listings of chosen kernels, and a digest of every pair of types.
//
// The texts are in tests/data/golden/, whose README says how to read them and how to add one. When
// a change of generated code is meant, rewrite them and look at the difference in review:
//   CASTOR_REWRITE_GOLDEN=1 build/release/tests/golden_test
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ir/convert_options.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/digest.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/golden_kernel.hpp"

namespace castor::test {
namespace {

std::vector<std::filesystem::path> listing_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder() / "listings")) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

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
# written with what limits it (l load, s store, p pipes, f front end). "=" is the very code of the
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
  EXPECT_LT(bytes, 400u << 10);
}

// ---- the comparison itself

TEST(GoldenComparison, ShowsThePlacesThatDiffer) {
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
  EXPECT_TRUE(short_difference(many, others).ends_with("and 15 more places\n"))
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

}  // namespace
}  // namespace castor::test
