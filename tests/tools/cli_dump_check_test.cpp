// SPDX-License-Identifier: Apache-2.0
// The castor command: dump and check.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <sstream>

#include "tests/support/cli.hpp"
#include "tests/support/golden.hpp"

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

TEST_F(Cli, DumpPlansConvolutionsForTheCoreInUseUnlessAskedOtherwise) {
  const std::string text =
      write("f.castor",
            "func @conv(%x: u8[1, 8, 9, 9], %w: i8[16, 8, 3, 3]) -> (i32[1, 16, 7, 7]) {\n"
            "  %y = conv_integer %x, %w\n"
            "  return %y\n"
            "}\n");
  const std::vector<std::string> plain = {"dump", text, "--stage", "nest"};
  const auto core_of = [&](std::string_view core) {
    return fmt::format("\n  core     {}\n", core);
  };
  const auto in_use = jit::choose_core({}, jit::host().identity, std::getenv("CASTOR_CORE"));
  expect_contains(castor(plain).out, core_of(name_of(in_use->core)));
  for (const char* core : {"generic", "zen5"}) {
    std::vector<std::string> asked = plain;
    asked.insert(asked.end(), {"--core", core});
    expect_contains(castor(asked).out, core_of(core));
    asked = plain;
    asked.insert(asked.begin(),
                 {"/usr/bin/env", fmt::format("CASTOR_CORE={}", core), CASTOR_COMMAND});
    expect_contains(run_command(asked).out, core_of(core));
  }
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

TEST_F(Cli, DumpWritesCodeForOtherTools) {
  const std::string text = write("f.castor", to_f16_text);
  const auto dump = [&](const std::string& option, const std::string& value) {
    std::vector<std::string> arguments = {"dump", text, "--isa", "avx2", option};
    if (!value.empty()) arguments.push_back(value);
    const CommandResult result = castor(arguments);
    expect_success(result);
    return result.out;
  };
  const std::string mca = dump("--mca", "");
  EXPECT_EQ(mca, dump("--format", "mca"));
  EXPECT_TRUE(mca.starts_with("# @to_f16 for avx2\n# nest0\n")) << mca;
  for (const char* line : {"  .intel_syntax noprefix\n", "# LLVM-MCA-BEGIN nest0_main_loop_",
                           "# LLVM-MCA-END nest0_main_loop_", "  jle nest0_L0\n"}) {
    expect_contains(mca, line);
  }
  for (const char* line : {"  .globl nest0\n", "nest0_pool:\n", "[rip+nest0_pool+0x"}) {
    expect_contains(dump("--format", "gas"), line);
  }
  expect_contains(dump("--format", "hex"), "# nest0\nf3 0f 1e fa ");  // endbr64
  expect_one_line(castor({"dump", text, "--format", "elf"}), 2,
                  "unknown format 'elf', expected gas, hex or mca");
  expect_one_line(castor({"dump", text, "--stage", "ir", "--mca"}), 2,
                  "--format and --mca are of --stage asm");
}

TEST_F(Cli, DumpWeighsLoopsByTheCoresPortModel) {
  const std::string text = write("f.castor", to_f16_text);
  for (const auto& [core, name] : {
           std::pair{"generic", "Zen 4"},
           {"zen4", "Zen 4"},
           {"zen5", "Zen 5"},
           {"golden_cove", "Golden Cove"},
       }) {
    const CommandResult result =
        castor({"dump", text, "--stage", "asm", "--isa", "avx2", "--core", core});
    expect_success(result);
    expect_contains(result.out, std::string(" cycles (") + name + ", L1) by ");
    const CommandResult named =
        run_command({"/usr/bin/env", std::string("CASTOR_CORE=") + core, CASTOR_COMMAND, "dump",
                     text, "--stage", "asm", "--isa", "avx2"});
    EXPECT_EQ(named.out, result.out);
  }
}

TEST_F(Cli, DumpRefusesAnUnknownCore) {
  const std::string text = write("f.castor", to_f16_text);
  expect_one_line(run_command({"/usr/bin/env", "CASTOR_CORE=zen9", CASTOR_COMMAND, "dump", text}),
                  1, "CASTOR_CORE names 'zen9', expected one of generic");
}

TEST_F(Cli, DumpShowsCodeWithFramePointers) {
  const std::string text = write("f.castor", to_f16_text);
  for (const std::vector<std::string>& format :
       {std::vector<std::string>{"--stage", "asm"}, {"--format", "gas"}}) {
    std::vector<std::string> line = {"dump", text, "--isa", "avx2"};
    line.insert(line.end(), format.begin(), format.end());
    const CommandResult plain = castor(line);
    line.push_back("--frame-pointers");
    const CommandResult kept = castor(line);
    expect_success(plain);
    expect_success(kept);
    expect_contains(kept.out, "mov rbp, rsp");
    EXPECT_EQ(plain.out.find("mov rbp, rsp"), std::string::npos) << plain.out;
  }
  expect_success(castor({"dump", text, "--html", path("page.html"), "--frame-pointers"}));
  EXPECT_NE(text_of_file(path("page.html")).find("mov rbp, rsp"), std::string::npos);
}

TEST_F(Cli, CheckComparesCodeWithFramePointers) {
  const std::string text = write("f.castor", to_f16_text);
  const std::vector<std::string> line = {"check", text, "--isa", "avx2", "--frame-pointers"};
  expect_success(castor(line));
  std::vector<std::string> corrupt = line;
  corrupt.push_back("--self-test-corrupt");
  const CommandResult wrong = castor(corrupt);  // the command that repeats it has the option
  EXPECT_EQ(wrong.status, 1);
  expect_contains(wrong.out, " --isa avx2 --seed 1 --frame-pointers --self-test-corrupt");
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

/// One unknown extent is the number of blocks of another: sizes of equal unknowns do not fit.
TEST_F(Cli, CheckFindsExtentsOfBlocks) {
  const char* const bodies[] = {
      "(%x: i4[?m, ?k], %s: f16[?, ?k]) -> f16[?m, ?k] {\n"
      "  %y = dequantize_linear %x, %s {axis = 0, block_size = 32} : f16\n",
      "(%x: u8[?a, ?b, ?c], %s: f32[?, ?b, ?]) -> f32[?a, ?b, ?c] {\n"
      "  %y = dequantize_linear %x, %s {axes = [0, 2], block = [3, 5]} : f32\n",
      "(%x: f4e2m1[?n, ?k], %s: f8e8m0[?n, ?]) -> bf16[?n, ?k] {\n"
      "  %y = dequantize_mx %x, %s {format = mxfp4} : bf16\n"};
  for (const char* body : bodies) {
    const std::string text = write("f.castor", std::string("func @f") + body + "  return %y\n}\n");
    const CommandResult result = castor({"check", text});
    expect_success(result);
    const size_t at = result.out.find(" cases, ");
    ASSERT_NE(at, std::string::npos) << result.out;
    EXPECT_GT(std::stoll(result.out.substr(at + 8)), 100000) << result.out;
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
