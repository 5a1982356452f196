// SPDX-License-Identifier: Apache-2.0
// Fold::any_nan along a row: opmasks of the lanes that have had no NaN (AVX-512).
#pragma once

#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

/// One comparison takes two chunks. Two masks are compared into in turn, since each comparison
/// waits for the one before into the same mask. Only the row's end makes a number of them.
class NanMasks {
 public:
  /// The opmasks, which LaneEmitter must leave alone.
  static constexpr uint32_t taken_masks = 0xc0;

  /// For chunks of that many lanes of `lane_bits`; `chunks` of them are an iteration of the main
  /// loop.
  NanMasks(Assembler& code, int lanes, int lane_bits, int chunks)
      : code_(code), lanes_(lanes), lane_bits_(lane_bits), chunks_(chunks) {}

  void emit_begin_row();
  /// A whole chunk, by its number in the iteration. One without a partner yet waits in `waiting`.
  void emit_chunk(int chunk, const Xbyak::Xmm& value, const Xbyak::Xmm& waiting);
  /// The lanes of `tail`.
  void emit_tail(LaneEmitter& emitter, const Xbyak::Xmm& value, const Xbyak::Opmask& tail);
  /// ZF: no lane has had a NaN.
  void emit_test();

 private:
  void emit_all_lanes(const Xbyak::Opmask& to);

  Assembler& code_;
  const int lanes_;
  const int lane_bits_;
  const int chunks_;
};

}  // namespace castor::jit
