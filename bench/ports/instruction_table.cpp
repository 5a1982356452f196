// SPDX-License-Identifier: Apache-2.0
#include "bench/ports/instruction_table.hpp"

#include <fmt/format.h>

#include "bench/ports/instruction_timing.hpp"
#include "jit/listing/listing.hpp"

namespace castor::bench {

namespace {

/// Forms of the table that the machine runs, each with its measured throughput.
template <class Row>
void for_each_form(const InstructionTable& table, const Row& row) {
  for (const InstructionForm& form : instruction_forms()) {
    if (form.name.starts_with(table.only) && jit::host().runs(form.tier)) row(form);
  }
}

std::string text_of(std::optional<double> value) {
  return value ? fmt::format("{:.2f}", *value) : "";
}

/// The model's cycles from one to the next.
std::optional<double> model_cycles(const InstructionForm& form, jit::PortModel model) {
  const auto loop = InstructionLoop::independent({&form});
  const auto cycles = jit::port_cycles(loop->body(), loop->body_loop(), model);
  if (!cycles) return std::nullopt;
  return cycles->bound() / InstructionLoop::copies;
}

std::optional<double> model_latency(const InstructionForm& form, jit::PortModel model) {
  const auto loop = InstructionLoop::independent({&form});
  const auto latency = jit::latency_at(loop->body(), 0, model);
  return latency && *latency > 0 ? std::optional(*latency) : std::nullopt;
}

}  // namespace

Status print_instructions(const InstructionTable& table) {
  const CoreClock clock;
  fmt::print("form,cycles,model,latency,model_latency\n");
  for_each_form(table, [&](const InstructionForm& form) {
    const InstructionCycles measured = measure_instruction(form, clock, table.budget_ns);
    fmt::print("\"{}\",{:.2f},{},{},{}\n", form.name, measured.throughput,
               text_of(model_cycles(form, table.model)), text_of(measured.latency),
               measured.latency ? text_of(model_latency(form, table.model)) : "");
    std::fflush(stdout);
  });
  return {};
}

Status print_pairs(const InstructionTable& table, const std::vector<std::string>& probes) {
  std::vector<const InstructionForm*> forms;
  std::string head = "form,cycles";
  for (const std::string& probe : probes) {
    const InstructionForm* form = form_named(probe);
    if (form == nullptr || !jit::host().runs(form->tier)) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("'{}' is no form that this machine runs", probe)};
    }
    forms.push_back(form);
    head += fmt::format(",\"{}\"", probe);
  }
  const CoreClock clock;
  fmt::print("{}\n", head);
  for_each_form(table, [&](const InstructionForm& form) {
    fmt::print("\"{}\",{:.2f}", form.name,
               measure_instruction(form, clock, table.budget_ns).throughput);
    for (const InstructionForm* probe : forms) {
      fmt::print(",{:.2f}", measure_pair(form, *probe, clock, table.budget_ns));
    }
    fmt::print("\n");
    std::fflush(stdout);
  });
  return {};
}

}  // namespace castor::bench
