// SPDX-License-Identifier: Apache-2.0
// Sweeps over all 2^32 patterns of f32, block by block, against the interpreter.
//
// The interpreter is too slow to be asked for each pattern. Within a binade a conversion is
// monotone in the pattern, and among NaNs it depends on the payload's first bits alone. So in a
// block, which is in one binade, a range whose ends convert alike is constant, and bisection finds
// where the code turns. A few patterns in each block are asked for nevertheless.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/conversions.hpp"

namespace castor::test {

/// Patterns of a block. It divides a binade (2^23).
inline constexpr uint32_t block_size = 1 << 16;
inline constexpr uint32_t block_count = 1 << 16;

/// The codes of one conversion f32 -> a type of at most 8 bits in one block, and their bytes.
class ExpectedBlock {
 public:
  explicit ExpectedBlock(const Conversion& conversion);

  /// Computes the codes of the patterns [block * block_size, (block + 1) * block_size).
  void compute(uint32_t block);
  /// The first pattern of the block for which the interpreter does not give the code computed, of
  /// a few drawn at random.
  std::optional<uint32_t> wrong_sample(uint32_t block) const;

  std::span<const std::byte> bytes() const { return bytes_; }
  uint8_t code(uint32_t index) const { return codes_[index]; }

 private:
  uint8_t convert(uint32_t pattern) const;
  /// The code of the whole block, if all of its ranges begin and end with it.
  std::optional<uint8_t> code_of_all_ranges(uint32_t block) const;
  /// Fills [begin, end), whose first and last pattern have the codes given.
  void fill(uint32_t begin, uint32_t end, uint8_t first, uint8_t last, uint32_t block);

  Conversion conversion_;
  std::vector<uint8_t> codes_;
  std::vector<std::byte> bytes_;
  std::optional<uint8_t> only_code_;  ///< the code of the block computed last, if it has but one
};

/// Sweeps many conversions from f32 on every tier, with as many threads as the machine has.
class Sweep {
 public:
  explicit Sweep(std::vector<Conversion> conversions) : conversions_(std::move(conversions)) {}

  /// Every block with `every` = 1; else each `every`th block and all in which, or next to which,
  /// a code turns.
  void run(uint32_t every);

  /// For each tier and conversion that went wrong one wrong element; empty if all is right.
  const std::map<std::string, std::string>& findings() const { return findings_; }
  /// Conversions of one block on one tier.
  uint64_t runs() const { return runs_; }

 private:
  class Worker;
  void report(const std::string& where, const std::string& what);

  std::vector<Conversion> conversions_;
  std::mutex mutex_;
  std::map<std::string, std::string> findings_;
  uint64_t runs_ = 0;
};

}  // namespace castor::test
