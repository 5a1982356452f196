// SPDX-License-Identifier: Apache-2.0
// castor manual and castor completion: texts for packages and shells.
#include "tools/castor/manual.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "castor/castor.hpp"
#include "tools/castor/command.hpp"
#include "tools/castor/command_parts.hpp"

namespace castor::tools {

namespace {

/// Text as roff takes it: backslashes and dashes as themselves, no line that begins with a dot or a
/// quotation mark.
std::string roff(std::string_view text) {
  std::string result;
  bool at_line_start = true;
  for (const char c : text) {
    if (at_line_start && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\' || c == '-') result += '\\';
    result += c == '\\' ? 'e' : c;
    at_line_start = c == '\n';
  }
  return result;
}

void add_paragraph(std::string& page, std::string_view term, std::string_view text) {
  page += fmt::format(".TP\n.B {}\n{}\n", roff(term), roff(text));
}

std::string term_of(const CLI::Option& option) {
  std::string term = fmt::format("{}", fmt::join(flags_of(option), ", "));
  const bool takes_value = option.get_expected_min() > 0 && !option.get_type_name().empty();
  if (takes_value) term += " " + option.get_type_name();
  return term;
}

/// "castor run [OPTIONS] FILE".
std::string synopsis_of(const CLI::App& command) {
  std::string line = fmt::format("castor {} [OPTIONS]", command.get_name());
  for (const CLI::Option* option : positionals_of(command)) line += " " + option->get_name(true);
  return line;
}

void add_command(std::string& page, const CLI::App& command) {
  page += fmt::format(".SS {}\n{}.\n", roff(synopsis_of(command)), roff(command.get_description()));
  for (const CLI::Option* option : positionals_of(command)) {
    add_paragraph(page, option->get_name(true), option->get_description());
  }
  for (const CLI::Option* option : options_of(command)) {
    add_paragraph(page, term_of(*option), option->get_description());
  }
  if (!command.get_footer().empty()) page += fmt::format(".PP\n{}\n", roff(command.get_footer()));
}

std::string words(const std::vector<std::string>& list) {
  return fmt::format("{}", fmt::join(list, " "));
}

/// "name) words=...;;" of a subcommand: its flags.
std::string flags_case(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : options_of(command)) {
    for (const std::string& flag : flags_of(*option)) flags.push_back(flag);
  }
  return fmt::format("    {}) words='{}' ;;\n", command.get_name(), words(flags));
}

/// "name:--flag) words=...;;" of each option whose value is one of some names.
std::string choices_cases(const CLI::App& command) {
  std::string cases;
  for (const CLI::Option* option : options_of(command)) {
    const std::vector<std::string> choices = choices_of(*option);
    if (choices.empty()) continue;
    for (const std::string& flag : flags_of(*option)) {
      cases += fmt::format("    {}:{}) words='{}' ;;\n", command.get_name(), flag, words(choices));
    }
  }
  return cases;
}

void add_text(CLI::App& app, Action& action, const std::string& name,
              const std::string& description, std::string (*text)(const CLI::App&)) {
  app.add_subcommand(name, description)->callback([&app, &action, text] {
    action = [&app, text]() -> Outcome {
      fmt::print("{}", text(app));
      return {};
    };
  });
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string page = fmt::format(".TH CASTOR 1 \"\" \"castor {}\" \"User Commands\"\n", version());
  page += fmt::format(
      ".SH NAME\ncastor \\- compile small tensor functions to machine code and check them\n"
      ".SH SYNOPSIS\n.B castor\n.I SUBCOMMAND\n[OPTIONS]\n"
      ".SH DESCRIPTION\n{}\n"
      "A function is written in a text form; its tensors are .npy files.\n.SH SUBCOMMANDS\n",
      roff(app.get_description()));
  for (const CLI::App* command : subcommands_of(app)) add_command(page, *command);
  page +=
      ".SH ONNX RUNTIME\nlibcastor_onnxruntime.so is a plugin execution provider for ONNX Runtime "
      "1.23 or newer: CastorExecutionProvider. An application registers it by its absolute path "
      "(register_execution_provider_library in Python, RegisterExecutionProviderLibrary in C++), "
      "and adds its device to the options of a session (add_provider_for_devices, "
      "AppendExecutionProvider_V2) with the options isa, threads, min_gain, explain and perf_map. "
      "The page runtime/onnxruntime/README.md beside this package's other documents says what it "
      "takes.\n"
      ".SH ENVIRONMENT\n.TP\n.B CASTOR_ISA\nThe tier that code is generated for where \\-\\-isa "
      "is not given.\n.TP\n.B CASTOR_CORE\nThe microarchitecture that code is planned for where "
      "\\-\\-core is not given.\n"
      ".SH EXIT STATUS\n.TP\n.B 0\nSuccess.\n.TP\n.B 1\nA file, a text or a run failed, or a check "
      "found a mismatch.\n.TP\n.B 2\nThe command line makes no sense.\n";
  return page;
}

std::string bash_completion(const CLI::App& app) {
  std::vector<std::string> names;
  std::string choices;
  std::string flags;
  for (const CLI::App* command : subcommands_of(app)) {
    names.push_back(command->get_name());
    choices += choices_cases(*command);
    flags += flags_case(*command);
  }
  return fmt::format(R"(# bash completion for castor {}
_castor() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} words=
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}}:$before in
{}  esac
  if [[ -z $words && $word == -* ]]; then
    case ${{COMP_WORDS[1]}} in
{}    esac
  fi
  if [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  else
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -F _castor castor
)",
                     version(), words(names), choices, flags);
}

void add_manual(CLI::App& app, Action& action) {
  add_text(app, action, "manual", "Print the manual page, for man", manual_page);
  add_text(app, action, "completion", "Print the completion script, for bash", bash_completion);
}

}  // namespace castor::tools
