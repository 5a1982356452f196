// SPDX-License-Identifier: Apache-2.0
// castor info: what this build and this machine can do.
#include <cstdlib>

#include "castor/castor.hpp"
#include "jit/tile_permission.hpp"
#include "tools/castor/command.hpp"
#include "tools/castor/format_value.hpp"
#include "tools/castor/tensor_files.hpp"

namespace castor::tools {

namespace {

std::string tier_in_use() {
  const Result<jit::Target> target = jit::choose_target({});
  if (target) {
    jit::PermittedTier permitted = jit::permitted_tier(target->tier);
    if (target->tier == jit::host().best) permitted.lower_because += jit::best_tier_lower_because();
    const std::string_view parted = permitted.lower_because.empty() ? "" : ": ";
    return fmt::format("{}{}{}", name_of(permitted.tier), parted, permitted.lower_because);
  }
  return fmt::format("none: {}", target.error().message);
}

std::string core_in_use() {
  const auto choice = jit::choose_core({}, jit::host().identity, std::getenv("CASTOR_CORE"));
  if (!choice) return fmt::format("none: {}", choice.error().message);
  return fmt::format("{} ({})", name_of(choice->core), choice->reason);
}

void print_tiers() {
  fmt::print("\ntier            vectors         runs here\n");
  for (const jit::TierInfo& row : jit::tier_table()) {
    fmt::print("{:<15} {:>2} x {} bits   {}\n", row.name, row.vector_registers, row.vector_bits,
               jit::host().runs(row.tier) ? "yes" : "no");
  }
}

std::string file_type(ElementType type) {
  const ElementType carrier = carrier_of(type);
  const std::string_view name = npy_descr(carrier).value().substr(1);
  if (carrier == type) return std::string(name);
  return fmt::format("{} ({})", name, is_sub_byte(type) ? "packed" : "raw bits");
}

/// Code of the largest number of a floating format.
uint64_t largest_code(const FloatFormat& format) {
  const uint64_t last = (uint64_t{1} << (format.exponent_bits + format.mantissa_bits)) - 1;
  switch (format.specials) {
    case FloatSpecials::ieee: return last - (uint64_t{1} << format.mantissa_bits);
    case FloatSpecials::nan_only: return last - 1;
    case FloatSpecials::fnuz:
    case FloatSpecials::finite: break;
  }
  return last;
}

/// Patterns of the smallest and the largest number, infinities aside.
struct Range {
  uint64_t smallest;
  uint64_t largest;
};

Range range_of(const ElementInfo& row) {
  switch (row.kind) {
    case ElementKind::boolean:
    case ElementKind::unsigned_integer: return {0, integer_max(row.type)};
    case ElementKind::signed_integer: return {uint64_t{1} << (row.bits - 1), integer_max(row.type)};
    case ElementKind::floating: {
      const uint64_t largest = largest_code(row.format);
      return {largest | uint64_t{1} << (row.bits - 1), largest};
    }
    case ElementKind::power_of_two: return {0, 0xFE};  // 0xFF is NaN
    case ElementKind::codebook: break;
  }
  return {0, 15};  // ascending
}

std::string kind_text(const ElementInfo& row) {
  switch (row.kind) {
    case ElementKind::boolean: return "boolean";
    case ElementKind::unsigned_integer: return "unsigned";
    case ElementKind::signed_integer: return "signed";
    case ElementKind::floating:
      return fmt::format("float 1-{}-{}", row.format.exponent_bits, row.format.mantissa_bits);
    case ElementKind::power_of_two: return "power of two";
    case ElementKind::codebook: break;
  }
  return "16 values";
}

std::string_view storage_text(const ElementInfo& row) {
  switch (row.order) {
    case StorageOrder::whole_bytes: break;
    case StorageOrder::lsb_first: return "bit stream, lowest bits first";
    case StorageOrder::msb_first: return "bytes filled from the highest bit";
    case StorageOrder::split: return "3-byte groups, low bits then high bits";
  }
  return row.bits == 8 ? "byte" : "little endian";
}

void print_element_types() {
  constexpr auto line = "{:<13} {:>4}  {:<13}  {:<13}  {:<38}  {}\n";
  fmt::print("\n");
  fmt::print(line, "element type", "bits", "kind", "in .npy files", "storage", "range");
  for (const ElementInfo& row : element_table) {
    const auto [smallest, largest] = range_of(row);
    const std::string range =
        fmt::format("{} to {}", format_value(smallest, row.type), format_value(largest, row.type));
    fmt::print(line, row.name, row.bits, kind_text(row), file_type(row.type), storage_text(row),
               range);
  }
}

Outcome print_info() {
  const jit::Host& host = jit::host();
  fmt::print("castor {}\n", version());
  fmt::print("cpu:          {}\n", host.cpu);
  const std::string features = names_of(host.features);
  fmt::print("features:     {}\n", features.empty() ? "none that castor uses" : features);
  fmt::print("best tier:    {}\n", host.best ? name_of(*host.best) : "none: interpreter only");
  fmt::print("caches:       {}\n", print(host.caches));
  fmt::print("tier in use:  {}\n", tier_in_use());
  fmt::print("core in use:  {}\n", core_in_use());
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
