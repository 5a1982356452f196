// SPDX-License-Identifier: Apache-2.0
// Moves, broadcasts, blends, and what goes in and out of parts of vectors.
#include "tools/machine/lanes.hpp"

namespace castor::machine {
namespace {

constexpr auto same = [](auto& step, const Row& row) {
  for (int i = 0; i < step.vector_bits / row.bits; ++i) step.move(row.bits, i, 0, i);
};

/// The first element in all lanes; from a general register where there is no vector operand.
constexpr auto broadcast = [](auto& step, const Row& row) {
  const int count = row.part_bits / row.bits;
  for (int i = 0; i < step.vector_bits / row.bits; ++i) {
    step.move(row.bits, i, 0, i % count);
  }
};

/// Lanes of the second operand where the writemask is set, else of the first.
constexpr auto blend_by_mask = [](auto& step, const Row& row) {
  for (int i = 0; i < step.vector_bits / row.bits; ++i) {
    step.choose(row.bits, i, step.writemask[static_cast<size_t>(i)], step.from[1], step.from[0]);
  }
};
/// Bytes by the highest bit of each byte of the third operand. Bytes that one bit of a term decides
/// are taken together, so that lanes which comparisons made stay lanes.
constexpr auto blend_bytes = [](auto& step, const Row&) {
  auto& d = step.domain;
  using D = std::remove_reference_t<decltype(d)>;
  for (size_t at = 0; at < static_cast<size_t>(step.vector_bits) / 8;) {
    int bytes = D::run_of(&step.from[0][at], 8 - static_cast<int>(at % 8));
    bytes = D::run_of(&step.from[1][at], bytes);
    const auto sign = [&](size_t i) { return d.extract(d.join(&step.from[2][i], 1), 7, 1); };
    const auto decides = sign(at);
    int count = 1;
    while (count < bytes && D::are_same(sign(at + static_cast<size_t>(count)), decides)) ++count;
    const auto a = d.join(&step.from[0][at], count);
    const auto b = d.join(&step.from[1][at], count);
    d.split(d.select(decides, b, a), &step.result[at]);
    at += static_cast<size_t>(count);
  }
};
/// By the highest bit of each lane of the third operand.
template <int bits>
constexpr auto blend_by_sign =
    [](const auto& l) { return l.domain.select(l.domain.extract(l.c, bits - 1, 1), l.b, l.a); };
constexpr auto blend_by_immediate = [](auto& step, const Row& row) {
  for (int i = 0; i < step.vector_bits / row.bits; ++i) {
    const int from = step.immediate >> (i % 8) & 1;
    step.move(row.bits, i, from, i);
  }
};

/// Replaces the part of `row.part_bits` bits that the immediate numbers in the first operand.
constexpr auto insert = [](auto& step, const Row& row) {
  step.result = step.from[0];
  const int parts = step.vector_bits / row.part_bits;
  const int first = step.immediate % parts * row.part_bits / 64;
  for (int i = 0; i < row.part_bits / 64; ++i) {
    step.move(64, first + i, 1, i);
  }
};
constexpr auto extract = [](auto& step, const Row& row) {
  const int parts = step.vector_bits / row.part_bits;
  const int first = step.immediate % parts * row.part_bits / 64;
  for (int i = 0; i < row.part_bits / 64; ++i) {
    step.move(64, i, 0, first + i);
  }
};
/// An element of a general register or of memory, put into the first operand.
constexpr auto insert_element = [](auto& step, const Row& row) {
  step.result = step.from[0];
  const int index = step.immediate % (128 / row.bits);
  set_lane(step.domain, step.result, index, step.domain.extract(step.general, 0, row.bits));
};
constexpr auto extract_element = [](auto& step, const Row& row) {
  const int index = step.immediate % (128 / row.bits);
  step.result_general = step.source(0, row.bits, index);
};
/// The highest bit of each byte, that of the first lowest.
constexpr auto highest_bits = [](auto& step, const Row&) {
  auto& d = step.domain;
  auto bits = d.extract(step.source(0, 8, 0), 7, 1);
  for (int i = 1; i < step.vector_bits / 8; ++i) {
    bits = d.concat(d.extract(step.source(0, 8, i), 7, 1), bits);
  }
  step.result_general = d.extend_zero(bits, 32);
};
/// The lowest element of a vector, of memory or of a general register, zeros above it.
constexpr auto low_element = [](auto& step, const Row& row) { step.move(row.bits, 0, 0, 0); };
/// The first operand's lower half, the second one's first quadword above it.
constexpr auto upper_half = [](auto& step, const Row&) {
  step.move(64, 0, 0, 0);
  step.move(64, 1, 1, 0);
};

/// The load of lanes whose lane of the first operand is negative; the others become zero.
constexpr auto masked_load = [](auto& step, const Row& row) {
  const auto zero = zero_vector(step.domain);
  for (int i = 0; i < step.vector_bits / row.bits; ++i) {
    const auto takes = step.domain.extract(step.source(0, row.bits, i), row.bits - 1, 1);
    step.choose(row.bits, i, takes, step.from[1], zero);
  }
};

/// Lanes that the writemask names, next to each other.
constexpr auto compress = [](auto& step, const Row& row) {
  auto& d = step.domain;
  const int lanes = step.vector_bits / row.bits;
  for (int to = 0; to < lanes; ++to) {
    auto value = step.constant(row.bits, 0);
    auto before = step.constant(8, 0);
    for (int i = 0; i < lanes; ++i) {
      const auto set = step.writemask[static_cast<size_t>(i)];
      const auto here =
          d.bit_and(set, d.equal(before, step.constant(8, static_cast<uint64_t>(to))));
      value = d.select(here, step.source(0, row.bits, i), value);
      before = d.add(before, d.extend_zero(set, 8));
    }
    set_lane(d, step.result, to, value);
  }
};

constexpr Row move(ZydisMnemonic mnemonic, int bits) {
  return row_by(mnemonic, bits, bits, same, Effect::lanes, Touched::lanes);
}
constexpr Row with_part(int part_bits, Row row) {
  row.part_bits = static_cast<uint16_t>(part_bits);
  return row;
}
constexpr Row broadcast_of(ZydisMnemonic mnemonic, int bits, int part_bits) {
  return with_part(part_bits, row_by(mnemonic, bits, bits, broadcast));
}
constexpr Row put_in(ZydisMnemonic mnemonic, int bits, int part_bits) {
  return with_part(part_bits, row_by(mnemonic, bits, bits, insert));
}
constexpr Row take_out(ZydisMnemonic mnemonic, int bits, int part_bits) {
  Row row = with_part(part_bits, row_by(mnemonic, bits, bits, extract));
  row.takes_out = true;
  return row;
}

constexpr Row table[] = {
    move(ZYDIS_MNEMONIC_VMOVUPS, 32),
    move(ZYDIS_MNEMONIC_VMOVUPD, 64),
    move(ZYDIS_MNEMONIC_VMOVAPS, 32),
    move(ZYDIS_MNEMONIC_VMOVNTPS, 32),
    move(ZYDIS_MNEMONIC_VMOVDQU, 64),
    move(ZYDIS_MNEMONIC_VMOVDQU8, 8),
    move(ZYDIS_MNEMONIC_VMOVDQU16, 16),
    move(ZYDIS_MNEMONIC_VMOVDQU32, 32),
    move(ZYDIS_MNEMONIC_VMOVDQU64, 64),
    move(ZYDIS_MNEMONIC_VMOVDQA32, 32),
    move(ZYDIS_MNEMONIC_VMOVDQA64, 64),
    row_by(ZYDIS_MNEMONIC_VMOVD, 32, 32, low_element),
    row_by(ZYDIS_MNEMONIC_VMOVQ, 64, 64, low_element),
    row_by(ZYDIS_MNEMONIC_VMOVHPS, 64, 64, upper_half),
    broadcast_of(ZYDIS_MNEMONIC_VPBROADCASTB, 8, 8),
    broadcast_of(ZYDIS_MNEMONIC_VPBROADCASTW, 16, 16),
    broadcast_of(ZYDIS_MNEMONIC_VPBROADCASTD, 32, 32),
    broadcast_of(ZYDIS_MNEMONIC_VPBROADCASTQ, 64, 64),
    broadcast_of(ZYDIS_MNEMONIC_VBROADCASTI128, 64, 128),
    broadcast_of(ZYDIS_MNEMONIC_VBROADCASTI32X4, 32, 128),
    row_by(ZYDIS_MNEMONIC_VPBLENDMB, 8, 8, blend_by_mask, Effect::all, Touched::lanes),
    row_by(ZYDIS_MNEMONIC_VPBLENDMW, 16, 16, blend_by_mask, Effect::all, Touched::lanes),
    row_by(ZYDIS_MNEMONIC_VPBLENDVB, 8, 8, blend_bytes),
    lanes(ZYDIS_MNEMONIC_VBLENDVPS, 32, blend_by_sign<32>),
    lanes(ZYDIS_MNEMONIC_VBLENDVPD, 64, blend_by_sign<64>),
    row_by(ZYDIS_MNEMONIC_VPBLENDD, 32, 32, blend_by_immediate),
    put_in(ZYDIS_MNEMONIC_VINSERTI128, 64, 128),
    put_in(ZYDIS_MNEMONIC_VINSERTI32X4, 32, 128),
    put_in(ZYDIS_MNEMONIC_VINSERTI64X4, 64, 256),
    take_out(ZYDIS_MNEMONIC_VEXTRACTI128, 64, 128),
    take_out(ZYDIS_MNEMONIC_VEXTRACTI32X4, 32, 128),
    take_out(ZYDIS_MNEMONIC_VEXTRACTI64X4, 64, 256),
    row_by(ZYDIS_MNEMONIC_VPINSRB, 8, 8, insert_element),
    row_by(ZYDIS_MNEMONIC_VPINSRW, 16, 16, insert_element),
    row_by(ZYDIS_MNEMONIC_VPINSRD, 32, 32, insert_element),
    row_by(ZYDIS_MNEMONIC_VPINSRQ, 64, 64, insert_element),
    row_by(ZYDIS_MNEMONIC_VPEXTRD, 32, 32, extract_element, Effect::general),
    row_by(ZYDIS_MNEMONIC_VPMOVMSKB, 8, 8, highest_bits, Effect::general),
    row_by(ZYDIS_MNEMONIC_VPMASKMOVD, 32, 32, masked_load, Effect::lanes, Touched::by_vector),
    row_by(ZYDIS_MNEMONIC_VPCOMPRESSD, 32, 32, compress, Effect::all),
};

}  // namespace

std::span<const Row> move_rows() { return table; }

}  // namespace castor::machine
