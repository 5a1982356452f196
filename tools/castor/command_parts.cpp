// SPDX-License-Identifier: Apache-2.0
#include "tools/castor/command_parts.hpp"

#include <algorithm>
#include <cctype>

namespace castor::tools {

namespace {

bool is_name(std::string_view text) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; };
  return !text.empty() && std::all_of(text.begin(), text.end(), fits);
}

/// The words of a text between commas and the word "or".
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const size_t comma = text.find(", ");
    const size_t last = text.find(" or ");
    const size_t end = std::min(comma, last);
    words.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return words;
    text.remove_prefix(end + (end == comma ? 2 : 4));
  }
}

std::vector<const CLI::Option*> shown(const CLI::App& command, bool positional) {
  return command.get_options([positional](const CLI::Option* option) {
    return !option->get_group().empty() && option->get_positional() == positional;
  });
}

}  // namespace

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  return shown(command, false);
}

std::vector<const CLI::Option*> positionals_of(const CLI::App& command) {
  return shown(command, true);
}

std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string& description = option.get_description();
  const size_t colon = description.rfind(": ");
  if (colon == std::string::npos) return {};
  std::vector<std::string> words = words_of(std::string_view(description).substr(colon + 2));
  const bool are_names = std::all_of(words.begin(), words.end(), is_name);
  return are_names ? words : std::vector<std::string>();
}

}  // namespace castor::tools
