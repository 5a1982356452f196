// SPDX-License-Identifier: Apache-2.0
// Options whose values are numbers.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace castor::tools {

/// The number that a text is from its first to its last character; nothing for other texts, and for
/// numbers that the type cannot hold.
template <class Number>
std::optional<Number> number_named(std::string_view text) {
  Number number = {};
  const char* const end = text.data() + text.size();
  const auto [parsed_end, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && parsed_end == end ? std::optional(number) : std::nullopt;
}

/// Adds an option whose value is a number from `min` to `max`; others are refused as wrong use:
/// "--seed: found '-1', expected a number from 0 to 9". (CLI11 takes -1 for 2^64 - 1.)
template <class Number, class Target>
CLI::Option* add_number_option(CLI::App& command, const std::string& flag, Target& target,
                               Number min, Number max, const std::string& placeholder,
                               const std::string& description) {
  const auto read = [&target, flag, min, max](const std::string& text) {
    const std::optional<Number> number = number_named<Number>(text);
    if (!number || !(*number >= min && *number <= max)) {
      throw CLI::ValidationError(
          flag, fmt::format("found '{}', expected a number from {} to {}", text, min, max));
    }
    target = *number;
  };
  return command.add_option_function<std::string>(flag, read, description)->type_name(placeholder);
}

}  // namespace castor::tools
