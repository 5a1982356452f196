// SPDX-License-Identifier: Apache-2.0
// Collecting programs that are one step smaller or plainer than another.
#pragma once

#include <vector>

#include "tools/fuzz/rewrite.hpp"

namespace castor::fuzz {

/// Changed copies of a program, those that make sense.
class Candidates {
 protected:
  explicit Candidates(const Program& program) : program_(program) {}

  /// Adds a copy that `change` has changed, where it still makes sense.
  template <class Change>
  void add(Change change) {
    Program copy = program_;
    change(copy);
    add_mended(std::move(copy), program_);
  }

  void add_mended(Program copy, const Program& before) {
    if (!mend(copy, before)) return;
    remove_dead(copy);
    if (build_function(copy)) all_.push_back(std::move(copy));
  }

  const Program& program_;
  std::vector<Program> all_;
};

/// With smaller extents, fewer axes, numbers in place of unknown extents.
std::vector<Program> smaller_shapes(const Program& program);

/// With one scale, frac and zero point for all slices, and plainer ones.
std::vector<Program> plainer_quantizations(const Program& program);

/// With plainer memory layouts, attributes, data and constants.
std::vector<Program> plainer_programs(const Program& program);

}  // namespace castor::fuzz
