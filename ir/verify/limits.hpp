// SPDX-License-Identifier: Apache-2.0
// How large texts and functions may be.
#pragma once

#include <cstddef>
#include <string_view>

#include "ir/support/export.hpp"
#include "ir/support/result.hpp"

namespace castor {

struct Function;

/// A function has at most this many operations, and this many values: a rule of the IR.
inline constexpr size_t max_operations = 65536;
inline constexpr size_t max_values = 65536;
/// Longest text that the parser takes, in bytes.
inline constexpr size_t max_text_bytes = size_t{16} << 20;

/// The largest functions that an engine wants read and compiled. Time and memory of both grow about
/// in proportion to these numbers, by some 10 us for each operation, and 100 us for each nest with
/// code of its own. What exceeds one of them is refused with ErrorCode::limit_exceeded, and the
/// message names what was found and the limit. Limits above max_operations, max_values and
/// max_text_bytes mean these. (Each constant is an operation; its bytes are the caller's.)
struct CompileLimits {
  size_t text_bytes = max_text_bytes;    ///< a longer text is refused before it is read
  size_t operations = max_operations;    ///< per function
  size_t values = max_values;            ///< per function, parameters among them
  size_t name_bytes = size_t{16} << 20;  ///< per function, Function::name_bytes
  size_t nests = size_t{16} << 10;       ///< loops that one function becomes

  static constexpr CompileLimits none() {
    constexpr size_t any = ~size_t{0};
    return {any, any, any, any, any};
  }
};

/// Refuses what exceeds a limit: "@f: found 3 operations, expected at most 2". Takes the same time
/// for every function.
CASTOR_API Status check_limits(const Function& function, const CompileLimits& limits);

/// Bytes of a function's own name and of those of its values and unknown extents, counted: for
/// functions that no FunctionBuilder has made, whose Function::name_bytes nobody has set.
size_t counted_name_bytes(const Function& function);

/// The failure of a limit.
CASTOR_API Error limit_exceeded(std::string_view subject, size_t found, std::string_view what,
                                size_t limit);

}  // namespace castor
