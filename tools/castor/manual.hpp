// SPDX-License-Identifier: Apache-2.0
// The command describes itself: its manual page and its shell completion, from the same tables as
// --help, so that neither can become outdated.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace castor::tools {

/// The manual page castor(1), in man(7) macros. `app` is the command with all its subcommands.
std::string manual_page(const CLI::App& app);

/// A completion script for bash: subcommands, their options, the names that an option's value may
/// have, and file names.
std::string bash_completion(const CLI::App& app);

}  // namespace castor::tools
