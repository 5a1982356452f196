// SPDX-License-Identifier: Apache-2.0
// Options of subcommands that say who watches the code that is made.
#pragma once

#include <castor/castor.hpp>

#include <CLI/CLI.hpp>

namespace castor::tools {

/// Adds --perf-map, --jitdump, --gdb, --dump-dir and --log. Messages go to
/// standard error.
void add_observe_options(CLI::App& command, RuntimeOptions& runtime);

}  // namespace castor::tools
