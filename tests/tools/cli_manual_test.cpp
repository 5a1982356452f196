// SPDX-License-Identifier: Apache-2.0
// castor manual and castor completion: they know every subcommand, option and name that the command
// itself knows, since packages install them.
#include <gtest/gtest.h>

#include "tests/support/cli.hpp"

namespace castor::test {
namespace {

/// The words of a help text that begin with two dashes, up to punctuation.
std::vector<std::string> flags_in(const std::string& help) {
  std::vector<std::string> flags;
  for (size_t at = help.find(" --"); at != std::string::npos; at = help.find(" --", at + 1)) {
    const size_t end = help.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at + 1);
    flags.push_back(help.substr(at + 1, end - at - 1));
  }
  return flags;
}

/// As roff writes dashes.
std::string in_manual(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '-' ? std::string("\\-") : std::string(1, c);
  return result;
}

class CliManual : public Cli {
 protected:
  std::string printed(const std::string& subcommand) const {
    const CommandResult result = castor({subcommand});
    expect_success(result);
    return result.out;
  }
};

TEST_F(CliManual, ManualAndCompletionKnowEveryFlag) {
  const std::string manual = printed("manual");
  const std::string completion = printed("completion");
  size_t flags = 0;
  for (const std::string command : {"info", "run", "convert", "dump", "check", "fuzz"}) {
    const CommandResult help = castor({command, "--help"});
    expect_success(help);
    expect_contains(manual, ".SS castor " + command + " [OPTIONS]");
    const size_t begin = completion.find("    " + command + ") words=");
    ASSERT_NE(begin, std::string::npos) << command;
    const std::string words = completion.substr(begin, completion.find('\n', begin) - begin);
    for (const std::string& flag : flags_in(help.out)) {
      expect_contains(manual, in_manual(flag));
      expect_contains(words, flag);
      ++flags;
    }
  }
  EXPECT_GT(flags, 15u);
  EXPECT_EQ(manual.find("self\\-test"), std::string::npos) << "hidden options stay hidden";
}

TEST_F(CliManual, CompletionKnowsNamesOfValues) {
  const std::string completion = printed("completion");
  for (const char* line :
       {"run:--isa) words='avx2 avx2_vnni avx512 avx512_vnni avx512_vbmi avx512_fp16 amx'",
        "dump:--core) words='generic zen4 zen5 golden_cove zen3'",
        "convert:--overflow) words='saturate wrap nan saturate_finite'",
        "dump:--stage) words='ir nest lanes asm'", "convert:--to) words='boolean u1 u2 u3 "}) {
    expect_contains(completion, line);
  }
}

TEST_F(CliManual, NoLineOfTheManualIsTakenForARequest) {
  const std::string manual = printed("manual");
  size_t lines = 0;
  for (size_t at = 0; at < manual.size(); at = manual.find('\n', at) + 1, ++lines) {
    const std::string line = manual.substr(at, manual.find('\n', at) - at);
    EXPECT_NE(line.front(), '\'') << line;
    if (line.front() != '.') continue;
    const std::string request = line.substr(1, line.find_first_of(" \n") - 1);
    const std::vector<std::string> known = {"TH", "SH", "SS", "TP", "PP", "B", "I"};
    EXPECT_NE(std::find(known.begin(), known.end(), request), known.end()) << line;
  }
  EXPECT_GT(lines, 60u);
}

}  // namespace
}  // namespace castor::test
