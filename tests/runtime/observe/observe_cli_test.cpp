// SPDX-License-Identifier: Apache-2.0
// castor run with the options that observe its code.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/cli.hpp"

namespace castor::test {
namespace {

TEST_F(Cli, RunObservesItsCode) {
  const std::string text = write("f.castor", to_f16_text);
  const std::string in = write_array("in.npy", ElementType::f32, {1, 2}, std::vector{1.f, 2.f});
  const CommandResult result =
      castor({"run", text, "--in", in, "--out", path("out.npy"), "--isa", "avx2", "--gdb",
              "--jitdump", path("profile"), "--dump-dir", path("dump"), "--log", "info"});
  EXPECT_EQ(result.status, 0) << result.err;
  expect_contains(result.err, "castor: info: @to_f16: compiled for avx2 in ");
  EXPECT_TRUE(std::filesystem::exists(path("dump") + "/to_f16.castor"));
  const std::string listing =
      path("dump") + "/castor_convert_saturate_f32_f16_contiguous_avx2.asm.txt";
  EXPECT_TRUE(std::filesystem::exists(listing));
  int dumps = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path("profile"))) {
    dumps += entry.path().filename().string().starts_with("jit-");
  }
  EXPECT_EQ(dumps, 1);
}

TEST_F(Cli, RunRefusesToObserveInVain) {
  const std::string text = write("f.castor", to_f16_text);
  const std::string in = write_array("in.npy", ElementType::f32, {1, 2}, std::vector{1.f, 2.f});
  const CommandResult missing = castor(
      {"run", text, "--in", in, "--out", path("out.npy"), "--dump-dir", path("missing/too")});
  EXPECT_EQ(missing.status, 1);
  expect_contains(missing.err, "cannot make the directory");
  const CommandResult level =
      castor({"run", text, "--in", in, "--out", path("out.npy"), "--log", "loud"});
  EXPECT_EQ(level.status, 2);
  expect_contains(level.err, "unknown level 'loud', expected debug, info, warning or error");
}

}  // namespace
}  // namespace castor::test
