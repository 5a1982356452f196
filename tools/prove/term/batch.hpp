// SPDX-License-Identifier: Apache-2.0
// Terms run on many inputs at once.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// Terms of at most 64 bits as a list of operations on lanes, one lane per value of the inputs.
class Batch {
 public:
  static constexpr size_t lanes = 512;  ///< two operands and a result stay in L1
  using Lanes = std::array<uint64_t, lanes>;
  static constexpr int max_width = 64;

  explicit Batch(std::span<const Term> roots);

  /// Whether no node is wider than 64 bits; others cannot be run.
  bool fits() const { return fits_; }
  /// Runs input values number first .. first + lanes - 1, where the bits of the inputs stand one
  /// after another, those of the first that the terms need lowest.
  void run(uint64_t first);
  /// The values of a node that a root needs.
  const Lanes& of(uint32_t node) const { return lanes_[slots_.at(node)]; }
  /// The inputs of a lane, by input number.
  std::vector<Bits> inputs_at(size_t lane) const;

 private:
  struct Step {
    Node node;
    std::array<uint32_t, max_operands> slots = {};
    int operand_width = 0;
  };

  void compute(const Step& step, Lanes& to);
  void compute_other(const Step& step, Lanes& to, const std::array<const Lanes*, 3>& v);

  const Terms& terms_;
  std::vector<Step> steps_;
  std::vector<uint32_t> inputs_;
  std::vector<Lanes> lanes_;
  std::unordered_map<uint32_t, uint32_t> slots_;  ///< by node
  bool fits_ = true;
};

}  // namespace castor::prove
