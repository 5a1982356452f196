// SPDX-License-Identifier: Apache-2.0
// Codes of at most four bits that are made of such codes by tables of half bytes: what each half of
// a source's byte gives to each byte of the result is looked up, sixteen entries at a time, as
// every target can. Elements are never unpacked.
//
// Eight elements are `bits_of` bytes of either type. For 16 groups of eight in each half of a
// register, bytes of the same number in their groups are brought together, since they share their
// tables; results are put between each other again.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "jit/emit/packed_loop.hpp"

namespace castor::jit {

/// A loop over blocks of 32 groups, of AVX2 instructions on registers of its own.
class MovedNibbles final : public PackedLoop {
 public:
  /// Null for other types, and where an element of two halves is not the sum of what its bits
  /// become. `map`: what becomes of each code.
  static std::unique_ptr<MovedNibbles> of(ElementType from, ElementType to,
                                          const std::vector<uint8_t>& map);

  std::string_view name() const override { return "nibbles"; }
  int elements() const override;
  uint32_t taken_vectors() const override;
  void emit(Stores stores, LaneEmitter& emitter, const Frame& frame,
            NestLoops& loops) const override;

 private:
  using Sixteen = std::array<uint8_t, 16>;
  /// What the lower or upper half of a byte of a group gives to a byte of the result.
  struct Term {
    int source = 0;
    bool is_upper = false;
    Sixteen table = {};
    bool operator==(const Term&) const = default;
  };
  class Block;

  MovedNibbles(ElementType from, ElementType to)
      : from_bits_(bits_of(from)), to_bits_(bits_of(to)) {}
  /// Finds the terms; false where they do not say what becomes of an element.
  bool find_terms(ElementType from, ElementType to, const std::vector<uint8_t>& map);
  /// Whether all bytes of groups have the same tables, and are what the same byte becomes.
  bool find_keeps_order() const;
  /// Blocks of an iteration.
  int blocks() const;

  int from_bits_;
  int to_bits_;
  std::vector<std::vector<Term>> terms_;  ///< by the byte of a result's group
  bool keeps_order_ = false;              ///< no byte is moved
};

}  // namespace castor::jit
