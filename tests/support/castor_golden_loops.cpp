// SPDX-License-Identifier: Apache-2.0
// castor_golden_loops: the port models' cycles of every golden loop as CSV, those measured on this
// machine, and the loops as text for llvm-mca.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>

#include "bench/ports/loop_replay.hpp"
#include "jit/listing/assembly_text.hpp"
#include "tests/support/golden_loops.hpp"

namespace castor::test {
namespace {

struct Options {
  std::string only;
  double milliseconds = 0;  ///< to measure a loop for; 0: not at all
  std::string mca_folder;
};

std::string symbol_of(size_t nest) { return fmt::format("nest{}", nest); }

/// As mca_text names it.
std::string region_of(const GoldenLoop& each) {
  std::string text =
      fmt::format("{}_{}_{:x}", symbol_of(each.nest), each.loop.name, each.loop.begin);
  std::ranges::replace(text, ' ', '_');
  return text;
}

/// "6.00 pipes FP1 FP2", "-" where the core lacks an instruction.
std::string model_text(const std::optional<jit::PortCycles>& cycles) {
  if (!cycles) return "-,-";
  std::string limit(cycles->limited_by());
  if (limit == "pipes") limit = cycles->busiest;
  return fmt::format("{:.2f},{}", cycles->bound(), limit);
}

std::string measured_text(const jit::MachineCode& code, const GoldenLoop& each,
                          const bench::CoreClock& clock, double milliseconds) {
  if (!jit::host().runs(each.tier) || jit::host().emulates(each.tier))
    return "-,no such instructions";
  const auto replay = bench::LoopReplay::prepare(code, each.loop);
  if (!replay) return "-," + replay.error().message;
  return fmt::format("{:.2f},", (*replay)->measure(clock, milliseconds * 1e6));
}

Status print_loops(const GoldenLoops& loops, const Options& options,
                   const bench::CoreClock& clock) {
  for (const GoldenLoop& each : loops.loops) {
    std::string line = fmt::format("{},{}", each.listing, region_of(each));
    for (const auto& cycles : each.cycles) line += "," + model_text(cycles);
    if (options.milliseconds > 0) {
      line += "," + measured_text(loops.codes[each.nest], each, clock, options.milliseconds);
    }
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }
  return {};
}

Status write_mca(const GoldenLoops& loops, const std::string& folder) {
  std::ofstream file(folder + "/" + loops.listing + ".s");
  for (size_t nest = 0; nest < loops.codes.size(); ++nest) {
    const auto text = jit::mca_text(loops.codes[nest], symbol_of(nest));
    if (!text) return text.error();
    file << *text;
  }
  file.close();
  if (file.good()) return {};
  return Error{ErrorCode::internal, "cannot write to " + folder};
}

Status print_all(const Options& options) {
  const auto all = golden_loops(options.only);
  if (!all) return all.error();
  std::string head = "listing,loop";
  for (size_t i = 0; i < jit::port_model_count; ++i) {
    const auto name = name_of(static_cast<jit::PortModel>(i));
    head += fmt::format(",{},{} limit", name, name);
  }
  fmt::print("{}{}\n", head, options.milliseconds > 0 ? ",measured,not measured" : "");
  const bench::CoreClock clock;
  for (const GoldenLoops& loops : *all) {
    if (Status status = print_loops(loops, options, clock); !status) return status;
    if (options.mca_folder.empty()) continue;
    if (Status status = write_mca(loops, options.mca_folder); !status) return status;
  }
  return {};
}

int run(int argc, char** argv) {
  CLI::App app("Prints what the port models say of every golden loop");
  Options options;
  app.add_option("--only", options.only, "listings whose names begin with this text");
  app.add_option("--measure", options.milliseconds, "milliseconds to measure each loop for");
  app.add_option("--mca", options.mca_folder, "a folder for texts that llvm-mca reads")
      ->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  const Status status = print_all(options);
  if (status) return 0;
  fmt::print(stderr, "castor_golden_loops: {}\n", status.error().to_string());
  return 1;
}

}  // namespace
}  // namespace castor::test

int main(int argc, char** argv) { return castor::test::run(argc, argv); }
