// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/byte_table.hpp"

#include <array>

namespace castor::jit {

namespace {

using Vector = std::array<uint8_t, 64>;

/// Bytes number `quarter * 64` and following of the table's low or high bytes.
Vector quarter_of(const ByteTable& table, int quarter, bool high) {
  Vector bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint16_t word = table[static_cast<size_t>(quarter) * 64 + i];
    bytes[i] = static_cast<uint8_t>(high ? word >> 8 : word);
  }
  return bytes;
}

/// vpermq: the order from which vpunpckl and vpunpckh, which work in 128-bit parts, give words in
/// the order of the bytes.
Vector unpack_order() {
  constexpr std::array<uint64_t, 8> qwords = {0, 4, 1, 5, 2, 6, 3, 7};
  Vector bytes;
  std::memcpy(bytes.data(), qwords.data(), bytes.size());
  return bytes;
}

/// 256 entries in two steps of 128: `upper` and `lower` tell bytes from 128 up from those below.
/// A byte that one step leaves alone is the other's index.
OwnedVector look_up_bytes(LaneEmitter& emitter, const ByteTable& table, bool high,
                          const Xbyak::Zmm& bytes, const Xbyak::Opmask& lower,
                          const Xbyak::Opmask& upper) {
  OwnedVector result = emitter.scratch();
  const Xbyak::Zmm to(result.as(512).getIdx());
  Assembler& code = emitter.code();
  code.vmovdqa64(to, bytes);
  for (int half = 0; half < 2; ++half) {
    OwnedVector fallbacks[2];
    const Xbyak::Xmm first = emitter.vector(quarter_of(table, 2 * half, high), fallbacks[0]);
    const Xbyak::Xmm second = emitter.vector(quarter_of(table, 2 * half + 1, high), fallbacks[1]);
    code.vpermi2b(to | (half == 0 ? lower : upper), first, second);
  }
  return result;
}

}  // namespace

void reserve_table(LaneEmitter& emitter, const ByteTable& table) {
  emitter.reserve_vector(unpack_order());
  for (const bool high : {false, true}) {
    for (int quarter = 0; quarter < 4; ++quarter) {
      emitter.reserve_vector(quarter_of(table, quarter, high));
    }
  }
}

TwoVectors look_up(LaneEmitter& emitter, const ByteTable& table, const Xbyak::Xmm& bytes) {
  Assembler& code = emitter.code();
  const OwnedMask upper = emitter.scratch_mask();
  const OwnedMask lower = emitter.scratch_mask();
  OwnedVector fallback;
  const Xbyak::Zmm order(emitter.vector(unpack_order(), fallback).getIdx());
  OwnedVector ordered = emitter.scratch();
  const Xbyak::Zmm indices(ordered.as(512).getIdx());
  code.vpermq(indices, order, bytes);
  code.vpmovb2m(upper.get(), indices);
  code.knotq(lower.get(), upper.get());
  const OwnedVector low = look_up_bytes(emitter, table, false, indices, lower.get(), upper.get());
  OwnedVector high = look_up_bytes(emitter, table, true, indices, lower.get(), upper.get());
  code.vpunpcklbw(indices, low.as(512), high.as(512));
  code.vpunpckhbw(high.as(512), low.as(512), high.as(512));
  return {std::move(ordered), std::move(high)};
}

}  // namespace castor::jit
