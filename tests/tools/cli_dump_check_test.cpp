// SPDX-License-Identifier: Apache-2.0
// The castor command: dump and check.
#include <gtest/gtest.h>

#include <iterator>
#include <sstream>

#include "tests/support/cli.hpp"

namespace castor::test {
namespace {

TEST_F(Cli, DumpPrintsEveryStageForEveryTier) {
  const std::string text = write("f.castor", to_f16_text);
  for (const jit::TierInfo& row : jit::tier_table()) {
    for (const char* stage : {"nest", "lanes", "asm"}) {
      const CommandResult result =
          castor({"dump", text, "--stage", stage, "--isa", std::string(row.name)});
      expect_success(result);
      expect_contains(result.out,
                      "@to_f16: " + std::string(stage) + " for " + std::string(row.name));
      EXPECT_GT(std::count(result.out.begin(), result.out.end(), '\n'), 3) << result.out;
    }
  }
  const CommandResult code = castor({"dump", text, "--stage", "asm", "--isa", "avx512"});
  expect_contains(code.out, "vcvtps2ph");
  expect_contains(code.out, "bytes");
  expect_contains(code.out, "convert %x {overflow = saturate} : f16");
  const CommandResult all = castor({"dump", text});
  expect_success(all);
  for (const char* stage : {": ir", ": nest", ": lanes", ": asm"}) expect_contains(all.out, stage);
}

TEST_F(Cli, DumpPlansConvolutionsForTheGenericCoreUnlessAskedOtherwise) {
  const std::string text =
      write("f.castor",
            "func @conv(%x: u8[1, 8, 9, 9], %w: i8[16, 8, 3, 3]) -> (i32[1, 16, 7, 7]) {\n"
            "  %y = conv_integer %x, %w\n"
            "  return %y\n"
            "}\n");
  const std::vector<std::string> plain = {"dump", text, "--stage", "nest"};
  expect_contains(castor(plain).out, "\n  core     generic\n");
  std::vector<std::string> zen5 = plain;
  zen5.insert(zen5.end(), {"--core", "zen5"});
  expect_contains(castor(zen5).out, "\n  core     zen5\n");
}

TEST_F(Cli, DumpShowsTheCanonicalFormWhereItDiffers) {
  const std::string text = write("f.castor",
                                 "func @long(%x: u8[4]) -> (f32[4]) {\n"
                                 "  %y = convert %x : u16\n"
                                 "  %z = convert %y : f32\n"
                                 "  return %z\n"
                                 "}\n"
                                 "func @short(%x: u8[4]) -> (f32[4]) {\n"
                                 "  %z = convert %x : f32\n"
                                 "  return %z\n"
                                 "}\n");
  const CommandResult longer = castor({"dump", text, "--stage", "ir", "--func", "long"});
  expect_success(longer);
  expect_contains(longer.out, "convert %x : u16");
  expect_contains(longer.out, "// canonicalised:");
  expect_contains(longer.out, "convert %x : f32");
  const CommandResult shorter = castor({"dump", text, "--stage", "ir", "--func", "short"});
  expect_success(shorter);
  EXPECT_EQ(shorter.out.find("// canonicalised:"), std::string::npos);
}

TEST_F(Cli, CheckComparesEveryFunctionOnEveryTier) {
  const std::string text =
      write("f.castor", to_f16_text +
                            "func @fixed(%x: i64[3, 5]) -> (u8[3, 5], f32[3, 5]) {\n"
                            "  %y = convert %x {overflow = saturate} : u8\n"
                            "  %z = convert %x : f32\n"
                            "  return %y, %z\n"
                            "}\n");
  const CommandResult result = castor({"check", text, "--isa", "all", "--seed", "5"});
  expect_success(result);
  for (const std::string& tier : runnable_tiers()) {
    expect_contains(result.out, "@to_f16 " + tier + ": identical");
    expect_contains(result.out, "@fixed " + tier + ": identical");
  }
  const CommandResult one = castor({"check", text, "--func", "fixed"});
  expect_success(one);
  EXPECT_EQ(std::count(one.out.begin(), one.out.end(), '\n'), 1) << one.out;
}

TEST_F(Cli, CheckStartsInsideBytes) {
  const std::string text = write("f.castor",
                                 "func @f(%x: u3[?]) -> (i4[?], u6.split[?], f8e5m2[?]) {\n"
                                 "  %a = convert %x : i4\n"
                                 "  %b = convert %x : u6.split\n"
                                 "  %c = convert %x : f8e5m2\n"
                                 "  return %a, %b, %c\n"
                                 "}\n");
  const CommandResult result = castor({"check", text, "--isa", "all"});
  expect_success(result);
  for (const std::string& tier : runnable_tiers()) {
    expect_contains(result.out, "@f " + tier + ": identical");
  }
}

/// The words after "repeat   castor" in a report.
std::vector<std::string> repeat_arguments(const std::string& report) {
  const std::string marker = "repeat   castor ";
  const size_t at = report.find(marker);
  if (at == std::string::npos) return {};
  std::istringstream line(
      report.substr(at + marker.size(), report.find('\n', at) - at - marker.size()));
  return {std::istream_iterator<std::string>(line), {}};
}

TEST_F(Cli, CheckReportsAMismatchThatItsCommandRepeats) {
  const std::string text = write("f.castor", to_f16_text);
  const CommandResult result = castor({"check", text, "--self-test-corrupt", "--seed", "9"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  expect_contains(result.err, "1 mismatch");
  for (const char* part :
       {"MISMATCH: @to_f16 on ", "output %y: 1 of ", "the first at [", "input    %x f32 ",
        "expected f16 ", "actual   f16 ", "(0x", "seed 9", "function:", "return %y", "ret"}) {
    expect_contains(result.out, part);
  }
  const std::vector<std::string> repeat = repeat_arguments(result.out);
  ASSERT_GE(repeat.size(), 6u) << result.out;
  const CommandResult again = castor(repeat);
  EXPECT_EQ(again.status, 1);
  EXPECT_EQ(again.out, result.out);
}

}  // namespace
}  // namespace castor::test
