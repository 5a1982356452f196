// SPDX-License-Identifier: Apache-2.0
// The castor command where streams are closed or full, where numbers are none, and where a text has
// mistakes beside the function that is asked for.
#include <gtest/gtest.h>

#include "tests/support/cli.hpp"

namespace castor::test {
namespace {

/// The command with its streams redirected by a shell: "2>&-", ">/dev/full".
CommandResult redirected(const std::string& streams, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(),
                   {"/bin/sh", "-c", "exec \"$0\" \"$@\" " + streams, CASTOR_COMMAND});
  return run_command(arguments);
}

constexpr const char* streams_that_refuse[] = {"2>&-", "2>/dev/full", ">&- 2>&-",
                                               ">/dev/full 2>/dev/full", "<&- >&- 2>&-"};

TEST_F(Cli, FailuresKeepTheirStatusWhereNoMessageArrives) {
  const std::string bad = write("bad.castor", "func @f(%x: f32[2]) -> (f16[2]) {\n");
  for (const char* streams : streams_that_refuse) {
    SCOPED_TRACE(streams);
    EXPECT_EQ(redirected(streams, {"dump", bad}).status, 1);
    EXPECT_EQ(redirected(streams, {"dump", path("absent.castor")}).status, 1);
    EXPECT_EQ(redirected(streams, {"fly"}).status, 2);
    EXPECT_EQ(redirected(streams, {}).status, 2);
    EXPECT_EQ(redirected(streams, {"check", "--seed", "-1", bad}).status, 2);
  }
}

TEST_F(Cli, OutputThatDoesNotArriveIsAFailure) {
  const std::string text = write("f.castor", to_f16_text);
  const std::vector<std::string> commands[] = {{"--help"},
                                               {"--version"},
                                               {"dump", "--help"},
                                               {"info"},
                                               {"dump", text, "--stage", "ir"},
                                               {"manual"},
                                               {"check", text},
                                               {"fuzz", "--count", "1"}};
  for (const std::vector<std::string>& command : commands) {
    SCOPED_TRACE(testing::PrintToString(command));
    for (const char* streams : {">/dev/full", ">&-", ">/dev/full 2>/dev/full", ">&- 2>&-"}) {
      SCOPED_TRACE(streams);
      EXPECT_EQ(redirected(streams, command).status, 1);
    }
    EXPECT_EQ(redirected("2>&-", command).status, 0);
    expect_contains(redirected(">/dev/full", command).err, "castor");
  }
}

/// A file that is opened while a standard stream is closed would get its number.
TEST_F(Cli, MessagesGoToNoFileThatTheCommandOpens) {
  const std::string in = write_array("in.npy", ElementType::f32, {2}, std::vector{1.f, 2.f});
  const std::string text = write("f.castor", "func @f(%x: f32[2]) -> (f32[2]) {\n  return %x\n}\n");
  const CommandResult result = redirected(
      "<&- >&- 2>&-", {"run", text, "--in", in, "--out", path("y.npy"), "--log", "debug"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(read_array<float>("y.npy", ElementType::f32, {2}), (std::vector{1.f, 2.f}));
}

TEST_F(Cli, NumbersOutOfRangeAreWrongUse) {
  const std::string text = write("f.castor", to_f16_text);
  const std::string any = "expected a number from 0 to 18446744073709551615";
  const struct {
    std::vector<std::string> command;
    std::string flag;
    std::string expected;
  } rows[] = {
      {{"check", text}, "--seed", any},
      {{"fuzz", "--count", "1"}, "--seed", any},
      {{"fuzz"}, "--count", "expected a number from 0 to 4611686018427387904"},
      {{"fuzz"}, "--seconds", "expected a number from 0 to 1000000000"},
      {{"run", text}, "--threads", "expected a number from 0 to 256"},
  };
  for (const auto& row : rows) {
    for (const char* number : {"-1", "-0.5", "18446744073709551616", "1e30", "99999999999999999999",
                               "nan", "inf", "0x10", " 1", "1 ", "+1", "1,000", "one", "--"}) {
      for (const bool joined : {false, true}) {
        std::vector<std::string> command = row.command;
        if (joined) {
          command.push_back(row.flag + "=" + number);
        } else {
          command.insert(command.end(), {row.flag, number});
        }
        const CommandResult result = castor(command);
        SCOPED_TRACE(testing::PrintToString(command));
        expect_one_line(result, 2, row.flag);
        if (std::string(number) == "--") continue;  // the end of the options
        expect_contains(result.err, std::string("found '") + number + "'");
        expect_contains(result.err, row.expected);
      }
    }
  }
}

TEST_F(Cli, NumbersInRangeAreTaken) {
  const std::string text = write("f.castor", to_f16_text);
  EXPECT_EQ(castor({"check", text, "--seed", "18446744073709551615"}).status, 0);
  expect_contains(castor({"fuzz", "--count", "1", "--seed", "18446744073709551615"}).out,
                  "seed 18446744073709551615,");
  EXPECT_EQ(castor({"fuzz", "--seconds", "0.25"}).status, 0);
  expect_contains(castor({"fuzz", "--help"}).out, "--seed N=1");
}

TEST_F(Cli, OtherFunctionsMayHaveAnyMistake) {
  const std::string good =
      "func @good(%x: f32[?n]) -> (f16[?n]) {\n  %y = convert %x : f16\n  return %y\n}\n";
  const std::string mistakes[] = {
      "func @bad(%x: f32[2]) -> (f16[2]) {\n  return %x\n}\n",                   // a rule broken
      "func @bad(%x: f32[2]) -> (f32[2]) {\n  %y = twist %x\n  return %y\n}\n",  // no op
      "func @bad(%x: f32[2]) -> (f32[2]) {\n  return %x\n",                      // no end
      "func @bad(%x: f32[2]\n",
      "func @bad\n",
      "func @bad(%x: f32[2]) -> (f32[2]) attributes {a = func} {\n  }}}} \" ~\n",
      "func @bad(%x: f32[2]) -> (f32[2]) attributes {a = func @good} {\n",
      "func @bad() -> (f32[2]) {\n  %y = constant @absent : f32[2]\n  return %y\n}\n",
      "func @bad() -> (f32[2]) {}\nfunc @bad() -> (f32[2]) {}\n",  // defined twice
  };
  const std::string in = write_array("in.npy", ElementType::f32, {2}, std::vector{1.f, 2.f});
  for (const std::string& mistake : mistakes) {
    for (const std::string& text : {mistake + good, good + mistake}) {
      SCOPED_TRACE(text);
      const std::string file = write("f.castor", text);
      EXPECT_EQ(castor({"dump", file}).status, 1) << "without --func everything must be right";
      expect_success(castor({"dump", file, "--func", "good", "--stage", "ir"}));
      expect_success(castor({"check", file, "--func", "good"}));
      expect_success(castor({"run", file, "--func", "good", "--in", in, "--out", path("out.npy")}));
      expect_one_line(castor({"dump", file, "--func", "bad"}), 1, "f.castor:");
      expect_one_line(castor({"dump", file, "--func", "none"}), 1, ", expected @none");
    }
  }
}

}  // namespace
}  // namespace castor::test
