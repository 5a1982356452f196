// SPDX-License-Identifier: Apache-2.0
// The text form: parser and printer (ir/README.md, Text form).
//
// Grammar, in EBNF: [ ] may be absent, { } repeats, | separates choices, "" is literal.
//
//   text       = function { function }
//   function   = "func" symbol "(" [ parameter { "," parameter } ] ")" "->" results
//                [ "attributes" attributes ] "{" { operation } return "}"
//   parameter  = value ":" type
//   results    = type | "(" [ type { "," type } ] ")"
//   operation  = value { "," value } "=" op [ operands | data ] [ attributes ] [ ":" suffix ]
//   operands   = operand { "," operand }          operand = value | "none"
//   return     = "return" [ value { "," value } ]
//   attributes = "{" [ attribute { "," attribute } ] "}"
//   attribute  = identifier "=" attribute-value
//   attribute-value = integer | decimal | word | string | "[" [ attribute-value { "," ... } ] "]"
//   data       = symbol | literal | list          (of `constant` alone)
//   list       = "[" [ entry { "," entry } ] "]"  entry = literal | list
//   literal    = integer | decimal | bits | "true" | "false" | "inf" | "nan"
//   type       = ( element | quantized ) shape    suffix = element | quantized | shape | type
//   quantized  = format "<" [ entry-of-format { "," entry-of-format } ] ">"
//   entry-of-format = "axis" "=" digits | ( "scale" | "frac" | "zero_point" ) "=" slices
//   slices     = integer | "[" [ integer { "," integer } ] "]" | "?"     (? is given at run time)
//   shape      = "[" [ dimension { "," dimension } ] "]"
//   dimension  = digits | "?" | "?" identifier    (no blank after the ?)
//
//   value      = "%" ( identifier | digits )      symbol = "@" identifier
//   identifier = ( letter | "_" ) { letter | digit | "_" | "." | "$" | "-" }
//   integer    = [ "-" ] digits                   bits = "0x" hexadecimal digits
//   decimal    = [ "-" ] digits [ "." digits ] [ ( "e" | "E" ) [ "+" | "-" ] digits ] | "-inf"
//   string     = '"' { byte | \" \\ \n \t \r \xHH } '"'   (bytes below 0x20 and 0x7f as \xHH)
//
// Blanks, tabs, line ends (LF or CRLF) and comments (`//` to the line's end) part tokens and mean
// nothing else. Columns count bytes from 1; a tab is one.
//
// - Function attributes follow the result types, under the word `attributes`:
//   func @f(%x: f16[2]) -> (f16[2]) attributes {excess_precision = allow} { ... }
// - An op takes a suffix where its row requires one (in place of an element type a full type may
//   stand) and may take one elsewhere; what is written is checked against the inferred type, of
//   each result. The suffix of `broadcast` and `reshape` is the target shape, whose named unknown
//   extents are those of parameters; of reshape's, one `?` follows from the count.
// - A format is fx8 or fx16 (with frac), sa8 or sa32 (with scale, frac, zero_point and, where these
//   are lists of one entry for each index of an axis, that axis); zero_point is 0 if not written.
// - An optional operand is `none`, or, like all that follow it, not written.
// - A constant of rank 0 takes one literal, any other a list: flat, or nested by the shape; one
//   literal never fills a tensor. Decimals are rounded once, to nearest even; a number out of the
//   type's range is an error, for floats too. `true` and `false` are for boolean alone. A bit
//   pattern is at most as wide as the type. `nan` is the quiet NaN of sign 0 and payload 0.
// - A word as an attribute's value is an identifier where the op's row wants one, as in
//   `overflow = nan`; elsewhere true, false, inf and nan are values.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/function.hpp"
#include "ir/support/export.hpp"
#include "ir/verify/limits.hpp"

namespace castor {

/// Deepest nesting of lists in attributes and constants.
inline constexpr int max_nesting = 32;

struct ParseOptions {
  /// Gives the bytes of `constant @name : type`, dense, in the type's storage order. Without it
  /// such a constant is an error. What it throws is an error as well (invalid_argument, at the
  /// constant's position in the text; out_of_memory for std::bad_alloc).
  std::function<Result<std::vector<std::byte>>(std::string_view name, const TensorType& type)>
      bind_constant;
  /// Limits of the text, and of each function in it: the parser refuses the first operation or
  /// value that exceeds one. The number of nests does not matter here.
  CompileLimits limits{};
};

/// Reads every function of a text, at least one, of unique names. The first mistake is reported
/// with line and column, what was found and what was expected; rules of the IR that a function
/// breaks come with the verifier's code and the position of the operation or name. Any input is
/// safe: texts and functions over `options.limits`, nesting over `max_nesting`, ranks over
/// `max_rank` and sizes that overflow are refused by message; time and memory are linear in the
/// text's length. Thread safe.
CASTOR_API Result<std::vector<FunctionPtr>> parse(std::string_view text,
                                                  const ParseOptions& options = {});

/// Reads a text and picks one function: the one of that name, or the only one when `name` is
/// empty. Of functions that have another name than the one asked for, nothing but the name is
/// looked at: whatever is wrong between it and the next `func @name` does not matter, and their
/// constants are not bound. Thread safe.
CASTOR_API Result<FunctionPtr> parse_function(std::string_view text, std::string_view name = {},
                                              const ParseOptions& options = {});

/// The text form of a function, one operation a line; `parse(print(f))` computes the same and
/// prints the same. A constant that was bound by name is written as `@name`, every other by its
/// literals: their text may exceed `max_text_bytes`. Thread safe.
CASTOR_API std::string print(const Function& function);

/// One operation as `print` writes it, without indentation: "%y = convert %x : f16".
CASTOR_API std::string print(const Function& function, const Operation& operation);

}  // namespace castor
