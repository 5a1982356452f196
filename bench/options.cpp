// SPDX-License-Identifier: Apache-2.0
#include "bench/options.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace castor::bench {

namespace {

/// The text after `prefix`, or nothing.
std::optional<std::string> value_of(std::string_view argument, std::string_view prefix) {
  if (!argument.starts_with(prefix)) return std::nullopt;
  return std::string(argument.substr(prefix.size()));
}

Status read_tier(const std::string& name, Options& options) {
  options.tier = jit::tier_named(name);
  if (options.tier) return {};
  std::string known;
  for (const jit::TierInfo& row : jit::tier_table()) known += fmt::format(" {}", row.name);
  return Error{ErrorCode::invalid_argument,
               fmt::format("--castor_isa names '{}', expected one of{}", name, known)};
}

Status read_stores(const std::string& name, Options& options) {
  using enum StorePolicy;
  constexpr std::array<std::pair<std::string_view, StorePolicy>, 3> policies = {
      {{"automatic", automatic}, {"cached", cached}, {"streaming", streaming}}};
  for (const auto& [known, policy] : policies) {
    if (name != known) continue;
    options.stores = policy;
    return {};
  }
  return Error{
      ErrorCode::invalid_argument,
      fmt::format("--castor_stores is '{}', expected automatic, cached or streaming", name)};
}

Status read_seconds(const std::string& text, Options& options) {
  char* end = nullptr;
  options.cell_seconds = std::strtod(text.c_str(), &end);
  const std::string_view suffix = end;
  if (end != text.c_str() && (suffix.empty() || suffix == "s") && options.cell_seconds >= 0)
    return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("--benchmark_min_time is '{}', expected seconds", text)};
}

Status read_argument(std::string_view argument, Options& options) {
  if (const auto name = value_of(argument, "--castor_isa=")) return read_tier(*name, options);
  if (const auto name = value_of(argument, "--castor_stores=")) return read_stores(*name, options);
  if (const auto time = value_of(argument, "--benchmark_min_time=")) {
    return read_seconds(*time, options);
  }
  if (value_of(argument, "--benchmark_out=")) options.writes_file = true;
  if (const auto format = value_of(argument, "--benchmark_out_format=")) {
    options.file_is_json = *format == "json";
  }
  if (const auto format = value_of(argument, "--benchmark_format=")) {
    options.displays_text = *format == "console";
  }
  return {};
}

}  // namespace

Result<Options> read_options(int argc, char** argv) {
  Options options;
  for (int i = 0; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (Status status = read_argument(argument, options); !status) return status.error();
    if (!argument.starts_with("--castor_")) options.remaining.push_back(argv[i]);
  }
  return options;
}

}  // namespace castor::bench
