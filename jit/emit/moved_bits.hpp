// SPDX-License-Identifier: Apache-2.0
// Codes that are made of codes by moving their bits: from one layout to another, to fewer bits, to
// more by zeros or the sign. Codes of four bits are first replaced by what becomes of them, where
// that is no such move. Elements are never unpacked. Each byte of the result is a sum, without
// carries, of products of bytes by matrices of bits (GFNI): a permutation brings the bytes together
// that are multiplied by the same matrix, one product takes eight of them, and a last permutation
// puts results in order.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "jit/emit/packed_loop.hpp"

namespace castor::jit {

/// How blocks of elements are made. A work vector has one or more parts, each of which holds one
/// term of the sum of each of the block's result bytes. Within it, bytes of the same number in
/// their groups of eight elements follow each other, since they share a matrix.
class MovedBits final : public PackedLoop {
 public:
  /// Null where a code, unless it has four bits and its result no more, is not the sum of what its
  /// bits become, and on targets without these products. `map`: what becomes of each code.
  static std::unique_ptr<MovedBits> of(ElementType from, ElementType to,
                                       const std::vector<uint8_t>& map, const Target& target);

  std::string_view name() const override { return "bits"; }
  int elements() const override { return blocks_ * block_elements(); }
  void emit(Stores stores, LaneEmitter& emitter, const Frame& frame,
            NestLoops& loops) const override;

 private:
  using Bytes = std::array<uint8_t, 64>;
  /// Bytes of the source and the matrices that they are multiplied by.
  struct Products {
    Bytes order = {};
    Bytes matrices = {};
  };
  struct Block;

  /// `moves`: what becomes of each code in the end, if it is moved only. `replaced`: what becomes
  /// of codes of four bits before; empty: nothing.
  MovedBits(ElementType from, ElementType to, const std::vector<uint8_t>& moves,
            std::vector<uint8_t> replaced);
  int block_elements() const { return 8 * groups_; }
  int source_bytes() const { return groups_ * bits_of(from_); }
  int sink_bytes() const { return groups_ * bits_of(to_); }
  /// Bytes of a part in a work vector: a power of two.
  int part_bytes() const;
  void emit_block(const Block& block, int index, Stores stores) const;
  void emit_replace(const Block& block) const;
  void emit_products(const Block& block) const;

  ElementType from_;
  ElementType to_;
  std::vector<uint8_t> replaced_;
  int groups_;     ///< groups of eight elements in a block: a multiple of eight
  int blocks_;     ///< blocks that an iteration does
  int parts_ = 1;  ///< parts that a work vector has, to be added to one: a power of two
  std::vector<Products> products_;
  bool keeps_order_ = false;  ///< no byte is moved: all are multiplied by one matrix
  Bytes order_ = {};          ///< results are put in this order at the end
  bool has_order_ = false;
};

}  // namespace castor::jit
