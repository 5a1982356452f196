// SPDX-License-Identifier: Apache-2.0
// Which cells a program has hit.
#pragma once

#include "tools/fuzz/coverage.hpp"
#include "tools/fuzz/executor.hpp"

namespace castor::fuzz {

/// Marks the cells of one program, a tier at a time. What counts is what runs: conversions that
/// canonicalisation leaves (or that stand alone between an input and a result), the nests that the
/// function becomes, and nothing where there are no elements. The prepared program must live on.
class ProgramRecord {
 public:
  explicit ProgramRecord(const Prepared& prepared);

  void mark(Coverage& coverage, size_t tier, Tier name, const CacheUse& use) const;

 private:
  void find_operations(const Function& function, bool only_alone);
  void find_layout(const LayoutCell& cell);
  void mark_nest(Coverage& coverage, size_t tier, const jit::Nest& nest, Tier name) const;
  void mark_operand(Coverage& coverage, size_t tier, const Image& image, bool is_output) const;
  void mark_calls(Coverage& coverage, size_t tier, const CacheUse& use) const;

  const Prepared& prepared_;
  FunctionPtr canonical_;
  std::vector<Cell> operations_;  ///< and conversions
};

}  // namespace castor::fuzz
