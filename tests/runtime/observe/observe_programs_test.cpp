// SPDX-License-Identifier: Apache-2.0
// GDB and perf, run on the castor command: both see the callers of generated code.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "tests/support/cli.hpp"

namespace castor::test {
namespace {

/// Remainders take long: of each element by a loop.
constexpr const char* slow_text =
    "func @slow(%x: f32[?n], %y: f32[?n]) -> (f32[?n]) {\n"
    "  %z = mod %x, %y\n"
    "  return %z\n"
    "}\n";
const std::string slow_code = "castor_mod_f32x2_f32_contiguous_";

class Programs : public Cli {
 protected:
  /// The command line that runs the slow function on that many elements.
  std::vector<std::string> slow_run(int64_t elements, const std::vector<std::string>& options) {
    const auto count = static_cast<size_t>(elements);
    const std::string x =
        write_array("x.npy", ElementType::f32, {elements}, std::vector<float>(count, 1e30F));
    const std::string y =
        write_array("y.npy", ElementType::f32, {elements}, std::vector<float>(count, 0.7F));
    std::vector<std::string> line = {
        CASTOR_COMMAND, "run",        write("slow.castor", slow_text), "--in", x, "--in", y,
        "--out",        path("z.npy")};
    line.insert(line.end(), options.begin(), options.end());
    return line;
  }
};

/// Runs a program that is found by its name.
CommandResult run_program(std::vector<std::string> command) {
  command.insert(command.begin(), "/usr/bin/env");
  return run_command(command);
}

/// Whether the program is there, and does what it is asked to here.
bool works(const std::vector<std::string>& command) { return run_program(command).status == 0; }

// ---- GDB

/// Steps through the kernel instruction by instruction, and prints how many backtraces there were,
/// how many of them reach main, and one of them.
constexpr const char* gdb_script = R"(
import gdb
gdb.execute("set confirm off")
gdb.execute("set breakpoint pending on")
gdb.execute("set debuginfod enabled off")
gdb.execute("set style enabled off")
gdb.execute("break BREAKPOINT")
gdb.execute("run")
steps, found = 0, 0
while steps < 500:
    frame = gdb.newest_frame()
    if not (frame.name() or "").startswith("castor_"):
        break
    if steps == 20:
        print(gdb.execute("bt", to_string=True))
    names = []
    while frame is not None:
        names.append(frame.name())
        frame = frame.older()
    steps, found = steps + 1, found + ("main" in names)
    gdb.execute("stepi", to_string=True)
print("STEPS", steps, "FOUND", found)
)";

TEST_F(Programs, GdbSeesTheCallersOfCode) {
  if (!works({"gdb", "--version"})) GTEST_SKIP() << "no gdb (Debian: gdb)";
  const std::string code = slow_code + "avx2";
  const std::string script =
      write("steps.py", std::regex_replace(gdb_script, std::regex("BREAKPOINT"), code));
  for (const bool frame_pointers : {false, true}) {
    std::vector<std::string> options = {"--gdb", "--isa", "avx2"};
    if (frame_pointers) options.push_back("--frame-pointers");
    std::vector<std::string> line = {"gdb", "-nx", "-batch", "-x", script, "--args"};
    for (const std::string& word : slow_run(3, options)) line.push_back(word);
    const CommandResult result = run_program(line);
    std::smatch match;
    ASSERT_TRUE(std::regex_search(result.out, match, std::regex("STEPS (\\d+) FOUND (\\d+)")))
        << result.out << result.err;
    EXPECT_GE(std::stoi(match[1]), 100) << result.out;
    EXPECT_EQ(match[1], match[2]) << result.out;
    EXPECT_TRUE(std::regex_search(
        result.out, std::regex("#0 .*" + code + "[^]*\n#[1-9].* castor::[^]*\n#.* main \\(")))
        << result.out;
  }
}

// ---- perf

/// Samples of a program, as perf script prints them: functions from the innermost on.
using Samples = std::vector<std::vector<std::string>>;

Samples samples_in(const std::string& script) {
  Samples samples;
  bool is_new = true;
  std::istringstream lines(script);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t") == std::string::npos) {
      is_new = true;
      continue;
    }
    if (is_new) samples.emplace_back();
    is_new = false;
    samples.back().push_back(line);
  }
  return samples;
}

/// Those whose innermost function is the kernel.
Samples in_kernel(const Samples& all) {
  Samples found;
  std::ranges::copy_if(all, std::back_inserter(found), [](const auto& sample) {
    return sample.front().find(slow_code) != std::string::npos;
  });
  return found;
}

class Perf : public Programs {
 protected:
  void SetUp() override {
    if (!works({"perf", "record", "-q", "-e", "cpu-clock", "-o", path("try.data"), "--", "true"})) {
      GTEST_SKIP() << "no perf that may record (Debian: linux-perf; kernel.perf_event_paranoid)";
    }
  }

  /// Records a run, puts its generated code into the profile, and reads the samples.
  Samples record(const std::string& call_graph, std::vector<std::string> options) {
    options.insert(options.end(), {"--jitdump", path("jit")});
    std::vector<std::string> line = {
        "perf", "record",       "-q",       "-e", "cpu-clock",      "-F", "2000", "-k",
        "mono", "--call-graph", call_graph, "-o", path("raw.data"), "--"};
    for (const std::string& word : slow_run(1 << 20, options)) line.push_back(word);
    const CommandResult recorded = run_program(line);
    EXPECT_EQ(recorded.status, 0) << recorded.err;
    const CommandResult injected =
        run_program({"perf", "inject", "--jit", "-i", path("raw.data"), "-o", path("jit.data")});
    EXPECT_EQ(injected.status, 0) << injected.err;
    const CommandResult script =
        run_program({"perf", "script", "-i", path("jit.data"), "-F", "ip,sym"});
    EXPECT_EQ(script.status, 0) << script.err;
    return in_kernel(samples_in(script.out));
  }
};

size_t count_with(const Samples& samples, std::string_view function) {
  return static_cast<size_t>(std::ranges::count_if(samples, [&](const auto& sample) {
    return std::ranges::any_of(
        sample, [&](const std::string& line) { return line.find(function) != std::string::npos; });
  }));
}

/// By the unwind records of jitdump. The caller has a block of arguments on its stack that is
/// larger than the 8 KiB which perf copies by default.
TEST_F(Perf, SeesTheCallersOfCodeByItsUnwindRecords) {
  const Samples samples = record("dwarf,32768", {});
  ASSERT_GE(samples.size(), 20u);
  EXPECT_EQ(count_with(samples, " main"), samples.size());
  EXPECT_EQ(count_with(samples, "castor::"), samples.size());
}

/// The caller itself: its own callers are as its compiler keeps frame pointers.
TEST_F(Perf, SeesTheCallerOfCodeByFramePointers) {
  for (const bool frame_pointers : {false, true}) {
    std::vector<std::string> options;
    if (frame_pointers) options.push_back("--frame-pointers");
    const Samples samples = record("fp", options);
    ASSERT_GE(samples.size(), 20u);
    size_t found = 0;
    for (const auto& sample : samples) {
      found += sample.size() >= 2 && sample[1].find("castor::detail::call") != std::string::npos;
    }
    EXPECT_EQ(found, frame_pointers ? samples.size() : 0);  // else rbp leads elsewhere
  }
}

}  // namespace
}  // namespace castor::test
