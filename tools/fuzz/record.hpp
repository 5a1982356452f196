// SPDX-License-Identifier: Apache-2.0
// Which cells a program has hit.
#pragma once

#include "tools/fuzz/coverage.hpp"
#include "tools/fuzz/executor.hpp"

namespace castor::fuzz {

/// Marks the cells of one program, a tier at a time. What counts is what runs: operations that
/// canonicalisation leaves (or that stand alone between inputs and results), the steps that the
/// runtime has bound, and nothing where there are no elements. The prepared program must live on.
class ProgramRecord {
 public:
  explicit ProgramRecord(const Prepared& prepared);

  void mark(Coverage& coverage, size_t tier, const CallTrace& trace) const;

 private:
  void find_operations(const Function& function, bool only_alone);
  void find_operation(const Function& function, const Operation& operation);
  void find_conversion_of(const Function& function, const Operation& operation);
  void find_layout(const LayoutCell& cell);
  void mark_steps(Coverage& coverage, size_t tier, const BoundKernel& bound) const;
  void mark_calls(Coverage& coverage, size_t tier, const CallTrace& trace) const;

  const Prepared& prepared_;
  FunctionPtr canonical_;
  std::vector<Cell> operations_;  ///< conversions and modes too
};

}  // namespace castor::fuzz
