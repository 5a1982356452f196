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
/// how many of them reach main over at least two frames between; how many of these are the same by
/// frame pointers alone, as a handler without unwind records goes: by what rbp points to and the
/// return address beside it; and one of them.
constexpr const char* gdb_script = R"(
import gdb, re
gdb.execute("set confirm off")
gdb.execute("set breakpoint pending on")
gdb.execute("set debuginfod enabled off")
gdb.execute("set style enabled off")
gdb.execute("break BREAKPOINT")
gdb.execute("run")
def plain(name):
    return re.split(r"[ (+]", name or "?")[0]
def up_to_main(names):  # a chain needs at least two frames between the kernel and main
    return names[:names.index("main") + 1] if "main" in names[2:] else None
def by_frame_pointers():
    word = gdb.lookup_type("unsigned long").pointer()
    names, frame = [], int(gdb.parse_and_eval("$rbp")) & (2**64 - 1)
    stack = int(gdb.parse_and_eval("$rsp")) & (2**64 - 1)
    while "main" not in names and len(names) < 64:
        if frame % 8 != 0 or not stack <= frame < stack + (1 << 23):
            return names
        values = gdb.Value(frame).cast(word)
        text = gdb.execute("info symbol %d" % (int(values[1]) - 1), to_string=True)
        names.append(plain(text))
        frame = int(values[0])
    return names
steps, found, followed = 0, 0, 0
while steps < 500:
    frame = gdb.newest_frame()
    if not (frame.name() or "").startswith("castor_"):
        break
    if steps == 20:
        print(gdb.execute("bt", to_string=True))
    names = []
    while frame.older() is not None:
        frame = frame.older()
        names.append(plain(frame.name()))
    chain = up_to_main(names)
    steps, found = steps + 1, found + (chain is not None)
    followed += chain is not None and up_to_main(by_frame_pointers()) == chain
    gdb.execute("stepi", to_string=True)
print("STEPS", steps, "FOUND", found, "FOLLOWED", followed)
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
    ASSERT_TRUE(std::regex_search(result.out, match,
                                  std::regex("STEPS (\\d+) FOUND (\\d+) FOLLOWED (\\d+)")))
        << result.out << result.err;
    const int steps = std::stoi(match[1]);
    EXPECT_GE(steps, 100) << result.out;
    EXPECT_EQ(std::stoi(match[2]), steps) << result.out;
    // Before the frame is made and after it is left, rbp is the caller's, so that one is missing.
    if (frame_pointers) {
      EXPECT_GE(std::stoi(match[3]), steps - 8) << result.out;
    } else {
      EXPECT_LE(std::stoi(match[3]), 8) << result.out;
    }
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

/// The library and the command keep frame pointers themselves, so all callers are found.
TEST_F(Perf, SeesTheCallersOfCodeByFramePointers) {
  for (const bool frame_pointers : {false, true}) {
    std::vector<std::string> options;
    if (frame_pointers) options.push_back("--frame-pointers");
    const Samples samples = record("fp", options);
    ASSERT_GE(samples.size(), 20u);
    size_t found = 0;
    for (const auto& sample : samples) {
      found += sample.size() >= 4 && sample[1].find("castor::detail::call") != std::string::npos &&
               count_with({sample}, " main") == 1;
    }
    EXPECT_EQ(found, frame_pointers ? samples.size() : 0);  // else rbp leads elsewhere
  }
}

}  // namespace
}  // namespace castor::test
