// SPDX-License-Identifier: Apache-2.0
// Narrowing on the way to memory: chunks of wide lanes become full vectors of narrow elements.
#pragma once

#include <vector>

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

/// Collects the chunks of one sink. Two registers of the same stage are combined as soon as both
/// are there: concatenated while they are narrower than what packs take, then packed to half their
/// width, until the elements fill a vector. Without AVX-512 chunks of up to 128 bits are packed in
/// registers of 128 bits, which keeps their order, and then joined.
class Packer {
 public:
  Packer() = default;
  Packer(const LaneEmitter& emitter, int lane_bits, int element_bits, Narrowing narrowing);

  /// Reserves the permutation tables that the stages need.
  void reserve_constants(LaneEmitter& emitter);
  /// Adds a chunk. True when that completes a vector, which is then in `full`.
  bool emit_push(LaneEmitter& emitter, OwnedVector chunk, OwnedVector& full);

  /// Leaves elements in the order in which packs put them, for the caller to restore it; of 32-bit
  /// lanes that become bytes, without AVX-512.
  void leave_order() { leaves_order_ = true; }
  void emit_restore_order(LaneEmitter& emitter, OwnedVector& full) const {
    emit_restore_order(emitter, 2, full);
  }

  /// Chunks in a full vector.
  int chunks() const { return 1 << stages(); }

 private:
  struct Pending {
    OwnedVector vector;
    int stage;
  };

  bool packs(int from_bits) const;
  int stages() const { return concat_stages_ + narrow_stages_ + join_stages_; }
  void emit_combine(LaneEmitter& emitter, int stage, OwnedVector& low, OwnedVector& high) const;
  void emit_concatenate(LaneEmitter& emitter, int bits, OwnedVector& low, OwnedVector& high) const;
  void emit_narrow(LaneEmitter& emitter, int from_bits, OwnedVector& low, OwnedVector& high) const;
  void emit_permute_even(LaneEmitter& emitter, int from_bits, OwnedVector& low,
                         OwnedVector& high) const;
  void emit_clear_upper_parts(LaneEmitter& emitter, int from_bits, OwnedVector& low,
                              OwnedVector& high) const;
  void emit_pack_in_halves(LaneEmitter& emitter, int from_bits, bool to_signed, OwnedVector& low,
                           OwnedVector& high) const;
  void emit_restore_order(LaneEmitter& emitter, int packs, OwnedVector& vector) const;

  int lane_bits_ = 0;
  int element_bits_ = 0;
  int vector_bits_ = 0;
  int packed_bits_ = 0;  ///< width of the registers that packs take
  int chunk_bits_ = 0;
  Narrowing narrowing_ = Narrowing::truncate;
  int concat_stages_ = 0;
  int narrow_stages_ = 0;
  int join_stages_ = 0;
  bool leaves_order_ = false;
  bool packs_what_fits_ = false;  ///< narrowing that changes no number is by packs
  std::vector<Pending> pending_;
};

/// Whether a sink collects chunks: their lanes are wider than the elements, or a chunk does not
/// fill the smallest vector register, or, with sub-byte elements, the largest.
bool needs_packing(const LaneInst& store, ElementType element, int lanes, const Target& target);

/// Narrows one chunk within its register: lanes of `lane_bits` in `from` become elements of
/// `element_bits` in the low part of `to`.
void emit_narrow_one(LaneEmitter& emitter, const OwnedVector& to, const Xbyak::Xmm& from,
                     int lane_bits, int element_bits, Narrowing narrowing);

}  // namespace castor::jit
