// SPDX-License-Identifier: Apache-2.0
// bf16 divided by positive f32 as f4e2m1, 64 at a time in bytes, without a division: how NVFP4 is
// written (AVX512-VBMI).
//
// A quotient's code depends on how many of seven limits |x| reaches: those halfway between
// the format's numbers, times the block's divisor. The limits are 1, 1.25, 1.5 and 1.75 divisors
// times powers of two. So four of them, as the least bf16 that is above, tell the code:
//
//   (bits of |x|) - (bits of the first limit) = octave * 128 + position, and the code is looked up
//   by the octave and by how many of the other three limits are at most at the position
//
// The limits are exact. With m one of the four, the f32 quotient is above m, where that is rounded
// down if halfway, just when x > d * (m + 2^-24); it is m or above, where that is rounded up, just
// when x > d * (m - 2^-24). No x is as large as such a product, which has more than 24 significant
// bits. The bf16 next to d * m is compared with it: x - d * m, exact as a multiply-add, with
// d * 2^-24 of either sign.
//
// Divisors that are negative, small or large, and NaNs among x are left to the lane program, which
// does the whole iteration: an output never has the memory of floats, which are wider.
#pragma once

#include "jit/emit/block_emitter.hpp"

namespace castor::jit {

/// Whether a nest's quotients are encoded in this way: it wants VBMI, contiguous operands, and one
/// divisor for each block of 16.
bool encodes_quotients(const Nest& nest, const NestForm& form, const Target& target);

class QuotientCoder final : public BlockEmitter {
 public:
  /// The registers that have one meaning for the whole function, which LaneEmitter must leave
  /// alone.
  static constexpr uint32_t taken_vectors = 0xffff0000;
  static constexpr uint32_t taken_masks = 0x80;

  QuotientCoder(const Nest& nest, const NestForm& form, Assembler& code, const Frame& frame,
                NestLoops& loops, BytesApart apart);

  void emit_constants() override;

 private:
  void emit_blocks_loop(Stores stores) override;
  void emit_limits();
  void emit_limit(float multiple, const Xbyak::Zmm& to);
  void emit_differences(int group);
  int block_of_limits(int group, int lane) const;
  void emit_codes(int group);
  void emit_store(int group, Stores stores);
  template <class BlockOf>
  void emit_of_blocks(const Xbyak::Zmm& to, const Xbyak::Zmm& by_block, const BlockOf& block_of);

  /// A constant for all lanes.
  Xbyak::Address all(uint32_t bits);
  Xbyak::Address all(float number);
  Xbyak::Address bytes(int value);

  const size_t floats_;
  const size_t divisors_;
  const BytesApart apart_;
};

}  // namespace castor::jit
