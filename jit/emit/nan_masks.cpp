// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/nan_masks.hpp"

#include "jit/emit/frame.hpp"
#include "jit/emit/op_helpers.hpp"

namespace castor::jit {

namespace {

const Opmask even_pairs(6);
const Opmask odd_pairs(7);

/// Controls of vcmpps, the quiet ones.
enum Comparison : uint8_t { unordered = 0x03, ordered = 0x07 };

void emit_compare(Assembler& code, const Opmask& to, const Xmm& a, const Xmm& b,
                  Comparison comparison, int lane_bits) {
  lane_bits == 32 ? code.vcmpps(to, a, b, comparison) : code.vcmppd(to, a, b, comparison);
}

}  // namespace

void NanMasks::emit_all_lanes(const Opmask& to) {
  code_.mov(gpr::counter.cvt32(), (1U << lanes_) - 1);
  code_.kmovd(to, gpr::counter.cvt32());
}

void NanMasks::emit_begin_row() {
  emit_all_lanes(even_pairs);
  emit_all_lanes(odd_pairs);
}

void NanMasks::emit_chunk(int chunk, const Xmm& value, const Xmm& waiting) {
  const bool is_first = chunk % 2 == 0;
  if (is_first && chunk + 1 < chunks_) return code_.vmovaps(waiting, value);
  Opmask under_itself = chunk / 2 % 2 == 0 ? even_pairs : odd_pairs;
  under_itself.setOpmaskIdx(under_itself.getIdx());  // lanes that have had a NaN keep it
  emit_compare(code_, under_itself, is_first ? value : waiting, value, ordered, lane_bits_);
}

void NanMasks::emit_tail(LaneEmitter& emitter, const Xmm& value, const Opmask& tail) {
  const OwnedMask nans = emitter.scratch_mask();
  emit_compare(code_, nans.get() | tail, value, value, unordered, lane_bits_);
  code_.kandnw(even_pairs, nans.get(), even_pairs);
}

void NanMasks::emit_test() {
  code_.kandw(even_pairs, even_pairs, odd_pairs);
  emit_all_lanes(odd_pairs);
  code_.kandnw(odd_pairs, even_pairs, odd_pairs);
  code_.kortestw(odd_pairs, odd_pairs);
}

}  // namespace castor::jit
