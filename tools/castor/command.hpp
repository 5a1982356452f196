// SPDX-License-Identifier: Apache-2.0
// What the subcommands have in common: how they register, how they end, and shared options.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ir/support/result.hpp"
#include "jit/target.hpp"

namespace castor::tools {

/// The process's exit status.
enum class ExitStatus : int {
  success = 0,
  failure = 1,    ///< a file, a text or a run failed, or a check found a mismatch
  wrong_use = 2,  ///< the command line makes no sense
};

/// Why a command failed, in one line.
struct Failure {
  ExitStatus status = ExitStatus::failure;
  std::string message;
};

/// Nothing: success.
using Outcome = std::optional<Failure>;

/// What to do once the command line is read; set by the subcommand that it names.
using Action = std::function<Outcome()>;

/// Writes to standard error, whether or not that takes it: nothing is thrown.
void print_error(const std::string& text) noexcept;

Failure wrong_use(std::string message);
Failure failed(const Error& error);

// Each registers one subcommand with `app`; `action` must outlive the parsing.
void add_info(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_dump(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_fuzz(CLI::App& app, Action& action);
void add_prove(CLI::App& app, Action& action);
void add_onnx(CLI::App& app, Action& action);
void add_manual(CLI::App& app, Action& action);

/// "avx2, avx2_vnni, ...".
std::string tier_names();
/// The last word in capitals, as --help writes values: "element type" gives "TYPE".
std::string placeholder(std::string_view what);

/// Adds an option whose value is a name that `named` knows; other names are refused as wrong use:
/// "unknown <what> 'x', expected <expected>".
template <class T, class Target>
CLI::Option* add_named_option(CLI::App& command, const std::string& flag, Target& target,
                              std::optional<T> (*named)(std::string_view), const std::string& what,
                              const std::string& expected, const std::string& description) {
  const auto read = [&target, named, flag, what, expected](const std::string& name) {
    const std::optional<T> value = named(name);
    if (!value) {
      throw CLI::ValidationError(flag,
                                 fmt::format("unknown {} '{}', expected {}", what, name, expected));
    }
    target = *value;
  };
  return command.add_option_function<std::string>(flag, read, description)
      ->type_name(placeholder(what));
}

/// Adds `--isa TIER`.
void add_isa_option(CLI::App& command, std::optional<jit::Tier>& tier);

/// Adds `--core CORE`.
void add_core_option(CLI::App& command, std::optional<jit::Core>& core);

/// Adds `--frame-pointers`.
void add_frame_pointers_option(CLI::App& command, bool& frame_pointers);

/// Adds `--interpret`.
void add_interpret_option(CLI::App& command, bool& interpret);

}  // namespace castor::tools
