// SPDX-License-Identifier: Apache-2.0
#include "tools/castor/command.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>

namespace castor::tools {

void print_error(const std::string& text) noexcept { (void)std::fputs(text.c_str(), stderr); }

Failure wrong_use(std::string message) { return {ExitStatus::wrong_use, std::move(message)}; }

Failure failed(const Error& error) { return {ExitStatus::failure, error.to_string()}; }

std::string tier_names() {
  std::string names;
  for (const jit::TierInfo& row : jit::tier_table()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  return names;
}

std::string placeholder(std::string_view what) {
  std::string word(what.substr(what.rfind(' ') + 1));  // npos + 1 is 0: the whole
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return word;
}

void add_isa_option(CLI::App& command, std::optional<jit::Tier>& tier) {
  add_named_option<jit::Tier>(command, "--isa", tier, jit::tier_named, "tier", tier_names(),
                              "generate code for this tier: " + tier_names());
}

void add_core_option(CLI::App& command, std::optional<jit::Core>& core) {
  add_named_option<jit::Core>(command, "--core", core, jit::core_named, "core", jit::core_names(),
                              "plan for this microarchitecture: " + jit::core_names());
}

void add_frame_pointers_option(CLI::App& command, bool& frame_pointers) {
  command.add_flag("--frame-pointers", frame_pointers,
                   "code keeps rbp as the frame pointer, for perf record -g");
}

void add_interpret_option(CLI::App& command, bool& interpret) {
  command.add_flag("--interpret", interpret,
                   "use the reference interpreter instead of machine code");
}

}  // namespace castor::tools
