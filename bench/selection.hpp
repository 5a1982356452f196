// SPDX-License-Identifier: Apache-2.0
// Which benchmarks run, by name.
#pragma once

#include <regex.h>

#include <memory>
#include <string>

#include "ir/support/result.hpp"

namespace castor::bench {

/// A filter as --benchmark_filter has it: a POSIX extended regular expression that matches
/// anywhere in the name; a leading '-' turns it round; "all" and "" select everything. It sees the
/// plain names, so that `$` means the end of what is printed.
class Selection {
 public:
  /// Fails (invalid_argument) where the expression does not parse.
  static Result<Selection> parse(std::string filter);

  /// Whether the benchmark of that name is to run; counts those that are.
  bool operator()(const std::string& name) const;
  /// How many were selected so far.
  size_t count() const { return count_; }

 private:
  struct Free {
    void operator()(regex_t* expression) const {
      regfree(expression);
      delete expression;
    }
  };
  std::unique_ptr<regex_t, Free> expression_;
  bool inverted_ = false;
  mutable size_t count_ = 0;
};

}  // namespace castor::bench
