// SPDX-License-Identifier: Apache-2.0
// castor-ports: what single instructions cost on this machine, beside the port model of a core.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "bench/ports/instruction_table.hpp"
#include "jit/core/core_tuning.hpp"
#include "jit/listing/listing.hpp"
#include "jit/target.hpp"

namespace castor::bench {
namespace {

constexpr jit::PortModel all_models[] = {jit::PortModel::zen4, jit::PortModel::zen5,
                                         jit::PortModel::golden_cove, jit::PortModel::redwood_cove};

std::optional<jit::PortModel> model_named(std::string_view name) {
  for (const jit::PortModel model : all_models) {
    if (name_of(model) == name) return model;
  }
  return std::nullopt;
}

int run(int argc, char** argv) {
  CLI::App app("Measures instructions that castor emits, one form a line, as CSV");
  std::string model_name(name_of(
      jit::port_model_of(jit::choose_core(jit::host().identity).core, jit::host().identity)));
  std::string only;
  std::vector<std::string> probes;
  double milliseconds = 6;
  app.add_option("--model", model_name, "the port model beside the figures")
      ->check([](const std::string& name) {
        return model_named(name) ? std::string() : "no port model is called " + name;
      });
  app.add_option("--only", only, "forms whose name begins with this text");
  app.add_option("--beside", probes,
                 "forms to run by turns with each other one; prints cycles of both, no latencies");
  app.add_option("--milliseconds", milliseconds, "time for each figure");
  CLI11_PARSE(app, argc, argv);
  const InstructionTable table{
      .model = *model_named(model_name), .only = only, .budget_ns = milliseconds * 1e6};
  const Status status = probes.empty() ? print_instructions(table) : print_pairs(table, probes);
  if (status) return 0;
  fmt::print(stderr, "castor-ports: {}\n", status.error().message);
  return 1;
}

}  // namespace
}  // namespace castor::bench

int main(int argc, char** argv) { return castor::bench::run(argc, argv); }
