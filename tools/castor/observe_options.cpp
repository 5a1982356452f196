// SPDX-License-Identifier: Apache-2.0
#include "tools/castor/observe_options.hpp"

#include <castor/listing.hpp>

#include "tools/castor/command.hpp"

namespace castor::tools {

namespace {

void print_message(void*, LogLevel level, std::string_view message) {
  print_error(fmt::format("castor: {}: {}\n", name_of(level), message));
}

std::optional<LogLevel> level_named(std::string_view name) {
  for (LogLevel level : {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error}) {
    if (name_of(level) == name) return level;
  }
  return std::nullopt;
}

}  // namespace

void add_observe_options(CLI::App& command, RuntimeOptions& runtime) {
  const std::string group = "Observing the code";
  ObserveOptions& options = runtime.observe;
  command.add_flag("--perf-map", options.perf_map, "tell perf its names: /tmp/perf-PID.map")
      ->group(group);
  command
      .add_option("--jitdump", options.jitdump_directory,
                  "write jit-PID.dump there, for perf record -k mono and perf inject --jit")
      ->type_name("DIRECTORY")
      ->group(group);
  command.add_flag("--gdb", options.gdb, "register it with GDB")->group(group);
  command
      .add_option_function<std::string>(
          "--dump-dir",
          [&options](const std::string& directory) {
            options.dump_directory = directory;
            options.listing = listing_writer();
          },
          "write functions, nests and listings there")
      ->type_name("DIRECTORY")
      ->group(group);
  const std::string levels = "debug, info, warning or error";
  command
      .add_option_function<std::string>(
          "--log",
          [&options, levels](const std::string& name) {
            const std::optional<LogLevel> level = level_named(name);
            if (!level) {
              throw CLI::ValidationError(
                  "--log", fmt::format("unknown level '{}', expected {}", name, levels));
            }
            options.log = print_message;
            options.log_level = *level;
          },
          "print messages from this level on: " + levels)
      ->type_name("LEVEL")
      ->group(group);
}

}  // namespace castor::tools
