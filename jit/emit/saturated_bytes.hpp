// SPDX-License-Identifier: Apache-2.0
// What a store does with bytes that narrowing has clamped: sub-byte integers have less range still,
// and codes are looked up.
#pragma once

#include <vector>

#include "jit/emit/lane_emitter.hpp"
#include "jit/emit/op_helpers.hpp"

namespace castor::jit {

class SaturatedBytes {
 public:
  /// Clamps to nothing and looks up nothing.
  SaturatedBytes() = default;
  /// What `store` does to an element; `program` outlives the object.
  SaturatedBytes(const LaneInst& store, ElementType element, const LaneProgram& program);

  /// How the lanes are narrowed to these bytes; other stores keep their narrowing.
  Narrowing narrowing() const { return narrowing_; }
  void reserve_constants(LaneEmitter& emitter) const;
  /// Clamps and looks up the bytes of a register in place.
  void emit(LaneEmitter& emitter, OwnedVector& bytes, int bits) const;

 private:
  struct Limit {
    BinaryMnemonic mnemonic;
    int value;
  };
  void add_range_of(int bits, bool is_signed);

  Narrowing narrowing_ = Narrowing::truncate;
  const ByteTable* table_ = nullptr;
  std::vector<Limit> limits_;
  bool is_masked_ = false;  ///< to the low bits that are the index
};

}  // namespace castor::jit
