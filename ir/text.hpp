// SPDX-License-Identifier: Apache-2.0
// The text form: parser and printer (DESIGN.md, IR).
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/function.hpp"

namespace castor {

/// Longest text that the parser takes, in bytes.
inline constexpr size_t max_text_bytes = size_t{16} << 20;
/// Deepest nesting of lists in attributes and constants.
inline constexpr int max_nesting = 32;

struct ParseOptions {
  /// Gives the bytes of `constant @name : type`, dense, in the type's storage order. Without it
  /// such a constant is an error.
  std::function<Result<std::vector<std::byte>>(std::string_view name, const TensorType& type)>
      bind_constant;
};

/// Reads every function of a text. The first mistake is reported with line and column, what was
/// found and what was expected. Any input is safe: texts over `max_text_bytes`, nesting over
/// `max_nesting`, ranks over `max_rank` and sizes that overflow are refused by message.
Result<std::vector<FunctionPtr>> parse(std::string_view text, const ParseOptions& options = {});

/// Reads a text and picks one function: the one of that name, or the only one when `name` is
/// empty.
Result<FunctionPtr> parse_function(std::string_view text, std::string_view name = {},
                                   const ParseOptions& options = {});

/// The text form of a function; `parse(print(f))` computes the same and prints the same.
std::string print(const Function& function);

/// One operation as `print` writes it, without indentation: "%y = convert %x : f16".
std::string print(const Function& function, const Operation& operation);

}  // namespace castor
