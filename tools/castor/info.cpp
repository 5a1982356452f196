// SPDX-License-Identifier: Apache-2.0
// castor info: what this build and this machine can do.
#include "castor/castor.hpp"
#include "tools/castor/command.hpp"
#include "tools/castor/tensor_files.hpp"

namespace castor::tools {

namespace {

std::string tier_in_use() {
  const Result<jit::Target> target = jit::choose_target({});
  if (target) return std::string(name_of(target->tier));
  return fmt::format("none: {}", target.error().message);
}

void print_tiers() {
  fmt::print("\ntier            vectors         runs here\n");
  for (const jit::TierInfo& row : jit::tier_table()) {
    fmt::print("{:<15} {:>2} x {} bits   {}\n", row.name, row.vector_registers, row.vector_bits,
               jit::host().runs(row.tier) ? "yes" : "no");
  }
}

std::string file_type(ElementType type) {
  const Result<ElementType> carrier = carrier_of(type);
  if (!carrier) return "";
  const std::string_view descr = npy_descr(*carrier).value();
  return fmt::format("{}{}", descr.substr(1), *carrier == type ? "" : " (raw bits)");
}

void print_element_types() {
  fmt::print("\nelement type  bits  in .npy files\n");
  std::string later;
  for (const ElementInfo& row : element_table) {
    if (row.implemented) {
      fmt::print("{:<13} {:>4}  {}\n", row.name, row.bits, file_type(row.type));
    } else {
      later += fmt::format(" {}", row.name);
    }
  }
  if (!later.empty()) fmt::print("known by name, not implemented:{}\n", later);
}

Outcome print_info() {
  const jit::Host& host = jit::host();
  fmt::print("castor {}\n", version());
  fmt::print("cpu:          {}\n", host.cpu);
  const std::string features = names_of(host.features);
  fmt::print("features:     {}\n", features.empty() ? "none that castor uses" : features);
  fmt::print("best tier:    {}\n", host.best ? name_of(*host.best) : "none: interpreter only");
  fmt::print("tier in use:  {}\n", tier_in_use());
  print_tiers();
  print_element_types();
  return {};
}

}  // namespace

void add_info(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("info", "Print the version, the detected tier and features, the types");
  command->callback([&action] { action = print_info; });
}

}  // namespace castor::tools
