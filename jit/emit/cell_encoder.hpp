// SPDX-License-Identifier: Apache-2.0
// 16-bit floats to codes by cells (CellTable); VBMI.
#pragma once

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

/// Encodes two vectors of words as one vector of bytes.
class CellEncoder {
 public:
  explicit CellEncoder(const CellTable& table) : table_(table) {}

  /// Reserves the constant vectors.
  void prepare(LaneEmitter& emitter) const;
  /// The codes of `low`'s words, then of `high`'s; both stay as they are.
  OwnedVector encode(LaneEmitter& emitter, const Xbyak::Xmm& low, const Xbyak::Xmm& high) const;

 private:
  OwnedVector cell_indices(LaneEmitter& emitter, const Xbyak::Xmm& words) const;
  OwnedVector join(LaneEmitter& emitter, OwnedVector low, const Xbyak::Xmm& high,
                   bool upper_bytes) const;
  OwnedVector join_copy(LaneEmitter& emitter, const Xbyak::Xmm& low, const Xbyak::Xmm& high,
                        bool upper_bytes) const;
  OwnedVector low_bits_of(LaneEmitter& emitter, const Xbyak::Xmm& low_bytes) const;
  void select_by_sign(LaneEmitter& emitter, const Xbyak::Xmm& upper, const Xbyak::Xmm& indices,
                      const Xbyak::Xmm& low_bits) const;
  void add_one_from_threshold(LaneEmitter& emitter, const Xbyak::Xmm& codes,
                              const Xbyak::Xmm& thresholds, const Xbyak::Xmm& low_bits) const;
  void apply_sign(LaneEmitter& emitter, const Xbyak::Xmm& codes, const Xbyak::Xmm& upper) const;
  void put_nans(LaneEmitter& emitter, const Xbyak::Xmm& codes, const Xbyak::Xmm& upper,
                const Xbyak::Xmm& low_bytes, const Xbyak::Xmm& low, const Xbyak::Xmm& high) const;

  const CellTable& table_;
};

}  // namespace castor::jit
