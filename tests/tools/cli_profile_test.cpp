// SPDX-License-Identifier: Apache-2.0
// castor run --profile: its table, and that the figures in it add up.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <sstream>

#include "tests/support/cli.hpp"

namespace castor::test {
namespace {

const std::string layer_text =
    "func @layer(%x: u8[1, 32, 28, 28], %w: i8[64, 32, 3, 3], %s: f32[64, 1, 1]) -> "
    "(u8[1, 64, 26, 26], f32[1, 64, 1, 1]) {\n"
    "  %y = conv_integer %x, %w\n"
    "  %f = convert %y : f32\n"
    "  %m = mul %f, %s\n"
    "  %q = convert %m {overflow = saturate} : u8\n"
    "  %r = reduce_max %m {axes = [2, 3], keep_dims = true}\n"
    "  return %q, %r\n"
    "}\n";

struct Line {
  std::string name;
  bool is_nest = true;
  double us = 0;
  double percent = 0;
  double gmacs = 0;
  double of_limit = 0;
};

double number_in(const std::string& word) { return word == "-" ? 0 : std::stod(word); }

/// The lines of the table after its head.
std::vector<Line> lines_of(const std::string& table) {
  const std::regex form(
      "^(  )?(\\S[^]*?) +([0-9.-]+) +([0-9.-]+) %(?: +[0-9]+ +(?:[0-9.]+ [KMG]?i?B|-) "
      "+(?:[0-9.]+ [KMG]?i?B|-) +([0-9.]+|-) +([0-9.]+|-)  ([0-9.]+ (?:stream|products)|-))?$");
  std::vector<Line> lines;
  std::istringstream text(table);
  std::string line;
  std::getline(text, line);
  std::getline(text, line);
  while (std::getline(text, line)) {
    std::smatch match;
    EXPECT_TRUE(std::regex_match(line, match, form)) << line;
    if (match.empty()) continue;
    lines.push_back({.name = match[2],
                     .is_nest = match[1].length() == 0,
                     .us = std::stod(match[3]),
                     .percent = std::stod(match[4]),
                     .gmacs = match[6].matched ? number_in(match[6]) : 0,
                     .of_limit = match[7].matched ? number_in(match[7]) : 0});
  }
  return lines;
}

class CliProfile : public Cli {
 protected:
  std::vector<std::string> layer_run(const std::vector<std::string>& options) {
    std::vector<std::string> line = {
        "run",
        write("layer.castor", layer_text),
        "--in",
        write_array("x.npy", ElementType::u8, {1, 32, 28, 28},
                    std::vector<uint8_t>(32 * 28 * 28, 3)),
        "--in",
        write_array("w.npy", ElementType::i8, {64, 32, 3, 3}, std::vector<int8_t>(64 * 32 * 9, -2)),
        "--in",
        write_array("s.npy", ElementType::f32, {64, 1, 1}, std::vector<float>(64, -0.01F)),
        "--out",
        path("q.npy"),
        "--out",
        path("r.npy")};
    line.insert(line.end(), options.begin(), options.end());
    return line;
  }
};

TEST_F(CliProfile, AddsUp) {
  for (const std::string& tier : runnable_tiers()) {
    SCOPED_TRACE(tier);
    const CommandResult result = castor(layer_run({"--profile", "--isa", tier}));
    expect_success(result);
    std::smatch head;
    const std::string first = result.out.substr(0, result.out.find('\n'));
    ASSERT_TRUE(std::regex_match(
        first, head,
        std::regex(
            "@layer on " + tier +
            ", 1 thread: ([0-9]+) calls, the fastest ([0-9.]+) us; at most ([0-9]+) GMAC/s by .*")))
        << result.out;
    EXPECT_GE(std::stoi(head[1]), 3);
    const double whole = std::stod(head[2]);
    const std::vector<Line> lines = lines_of(result.out);
    ASSERT_GE(lines.size(), 3u) << result.out;
    double nests = 0;
    double percent = 0;
    double within = 0;  // the first nest, which is the convolution
    for (const Line& line : lines) {
      if (line.is_nest) nests += line.us;
      if (line.is_nest) percent += line.percent;
      if (!line.is_nest) within += line.us;
      EXPECT_LT(line.of_limit, 1.5) << line.name << "\n" << result.out;
      EXPECT_NEAR(line.percent, 100 * line.us / whole, 0.1) << result.out;
    }
    EXPECT_NEAR(nests, whole, 0.02 * static_cast<double>(lines.size())) << result.out;
    EXPECT_NEAR(percent, 100, 0.1 * static_cast<double>(lines.size())) << result.out;
    EXPECT_EQ(lines.front().name.rfind("nest 0: conv_integer", 0), 0u) << result.out;
    EXPECT_LE(within, lines.front().us * 1.001 + 0.02) << result.out;
    // 64 x 26 x 26 results of 32 x 9 products each.
    EXPECT_NEAR(lines.front().gmacs, 12459.0 / lines.front().us, 0.1 + 0.002 * lines.front().gmacs)
        << result.out;
    EXPECT_GT(lines.front().of_limit, 0) << result.out;
    EXPECT_EQ(lines.back().name, "checks, scratch, taking times");
    EXPECT_EQ(read_array<uint8_t>("q.npy", ElementType::u8, {1, 64, 26, 26}).front(), 17)
        << "3 * -2 * -0.01 * 288 is 17.28";
  }
}

TEST_F(CliProfile, OfSeveralThreadsAndFunctionsWithoutProducts) {
  const std::string text = write("f.castor", to_f16_text);
  const std::string in =
      write_array("in.npy", ElementType::f32, {64, 1024}, std::vector<float>(64 * 1024, 1.5F));
  const CommandResult result = castor({"run", text, "--in", in, "--out", path("out.npy"),
                                       "--profile", "--threads", "2", "--isa", "avx2"});
  expect_success(result);
  EXPECT_EQ(result.out.rfind("@to_f16 on avx2, 2 threads: ", 0), 0u) << result.out;
  EXPECT_EQ(result.out.find("GMAC/s by"), std::string::npos) << result.out;
  const std::vector<Line> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 2u) << result.out;
  EXPECT_EQ(lines[0].name, "nest 0: convert");
  EXPECT_GT(lines[0].of_limit, 0.01) << result.out;
  expect_contains(result.out, "256.0 KiB");
  expect_contains(result.out, "128.0 KiB");
}

TEST_F(CliProfile, IsOfMachineCodeAlone) {
  const std::string text = write("f.castor", to_f16_text);
  const std::string in = write_array("in.npy", ElementType::f32, {1, 2}, std::vector{1.F, 2.F});
  const CommandResult result =
      castor({"run", text, "--in", in, "--out", path("out.npy"), "--profile", "--interpret"});
  expect_one_line(result, 1,
                  "a profile is of machine code, but the interpreter runs: the runtime was asked");
}

}  // namespace
}  // namespace castor::test
