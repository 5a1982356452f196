// SPDX-License-Identifier: Apache-2.0
// What a command line consists of, for texts about it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace castor::tools {

/// The subcommands, in the order of --help.
std::vector<const CLI::App*> subcommands_of(const CLI::App& app);

/// The options that --help shows, with or without a leading dash, in its order.
std::vector<const CLI::Option*> options_of(const CLI::App& command);
std::vector<const CLI::Option*> positionals_of(const CLI::App& command);

/// "-h", "--help".
std::vector<std::string> flags_of(const CLI::Option& option);

/// The names that the option's value may have: those that its description ends with, as in
/// "generate code for this tier: avx2, avx512" or "saturate, wrap or nan". Empty for other values.
std::vector<std::string> choices_of(const CLI::Option& option);

}  // namespace castor::tools
