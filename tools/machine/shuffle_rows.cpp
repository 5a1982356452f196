// SPDX-License-Identifier: Apache-2.0
// Permutations: by an immediate, by another vector, and the fixed ones of packs and unpacks.
#include <vector>

#include "tools/machine/lanes.hpp"

namespace castor::machine {
namespace {

/// Visits each lane with the first lane of its 128-bit part.
template <class Visit>
void each_part(int vector_bits, int bits, Visit visit) {
  const int per_part = 128 / bits;
  for (int first = 0; first < vector_bits / bits; first += per_part) visit(first, per_part);
}

/// The lower (upper) halves of the parts of two operands, in turns.
template <bool upper>
constexpr auto unpack = [](auto& step, const Row& row) {
  each_part(step.vector_bits, row.bits, [&](int first, int count) {
    for (int i = 0; i < count; ++i) {
      const int from = first + i / 2 + (upper ? count / 2 : 0);
      step.move(row.bits, first + i, i % 2, from);
    }
  });
};

/// A signed lane, clamped to half its width.
template <bool to_signed>
constexpr auto clamped = [](auto& d, const auto& value, int bits) {
  const auto least = d.constant(2 * bits, to_signed ? ~uint64_t{0} << (bits - 1) : 0);
  const auto most = d.constant(2 * bits, low_bits(to_signed ? bits - 1 : bits));
  const auto above = d.select(d.less_signed(value, least), least, value);
  return d.extract(d.select(d.less_signed(most, above), most, above), 0, bits);
};
/// Each part of the first operand, narrowed, then that of the second.
template <bool to_signed>
constexpr auto pack = [](auto& step, const Row& row) {
  each_part(step.vector_bits, row.bits, [&](int first, int count) {
    for (int i = 0; i < count; ++i) {
      const int from = first / 2 + i % (count / 2);
      const auto value = step.source(i / (count / 2), row.source_bits, from);
      set_lane(step.domain, step.result, first + i,
               clamped<to_signed>(step.domain, value, row.bits));
    }
  });
};

/// Bytes of the same part by the low four bits of the second operand's; zero where it is negative.
constexpr auto shuffle_bytes = [](auto& step, const Row&) {
  auto& d = step.domain;
  for (int i = 0; i < step.vector_bits / 8; ++i) {
    std::array<typename std::decay_t<decltype(d)>::Bits, 16> bytes;
    for (int k = 0; k < 16; ++k) bytes[static_cast<size_t>(k)] = step.source(0, 8, i - i % 16 + k);
    const auto index = step.source(1, 8, i);
    using D = std::remove_reference_t<decltype(d)>;
    if (const auto known = D::value_of(index)) {
      if (*known < 0x80) step.move(8, i, 0, i - i % 16 + static_cast<int>(*known & 15));
      continue;
    }
    const auto found = d.look_up(bytes, d.extract(index, 0, 4));
    set_lane(d, step.result, i, d.select(d.extract(index, 7, 1), step.constant(8, 0), found));
  }
};

/// Lanes of the same 128 bits by the low two bits of the second operand's.
constexpr auto permute_within_128 = [](auto& step, const Row& row) {
  auto& d = step.domain;
  each_part(step.vector_bits, row.bits, [&](int first, int count) {
    for (int i = 0; i < count; ++i) {
      const auto index = d.extract(step.source(1, row.bits, first + i), 0, 2);
      using D = std::remove_reference_t<decltype(d)>;
      if (const auto known = D::value_of(index)) {
        step.move(row.bits, first + i, 0, first + static_cast<int>(*known));
        continue;
      }
      std::array<typename D::Bits, 4> lanes;
      for (int k = 0; k < count; ++k) {
        lanes[static_cast<size_t>(k)] = step.source(0, row.bits, first + k);
      }
      set_lane(d, step.result, first + i, d.look_up(lanes, index));
    }
  });
};

/// Two lanes of the first operand's part, then two of the second one's.
constexpr auto shuffle_two = [](auto& step, const Row&) {
  each_part(step.vector_bits, 32, [&](int first, int) {
    for (int i = 0; i < 4; ++i) {
      const int from = first + (step.immediate >> (2 * i) & 3);
      step.move(32, first + i, i / 2, from);
    }
  });
};
/// Whole parts: the lower half of the result from the first operand, the upper from the second.
constexpr auto shuffle_parts = [](auto& step, const Row&) {
  const int parts = step.vector_bits / 128;
  const int index_bits = parts == 4 ? 2 : 1;
  for (int i = 0; i < parts; ++i) {
    const int from = step.immediate >> (index_bits * i) & (parts - 1);
    for (int k = 0; k < 2; ++k) {
      step.move(64, 2 * i + k, 2 * i / parts, 2 * from + k);
    }
  }
};

/// Each half of the result is either half of either operand, or zero.
constexpr auto pick_halves = [](auto& step, const Row&) {
  for (int half = 0; half < 2; ++half) {
    const int control = step.immediate >> (4 * half) & 0xf;
    for (int k = 0; k < 2; ++k) {
      if ((control & 8) != 0) {
        set_lane(step.domain, step.result, 2 * half + k, step.constant(64, 0));
      } else {
        step.move(64, 2 * half + k, control >> 1 & 1, 2 * (control & 1) + k);
      }
    }
  }
};

/// The lanes of one operand, or of two, the first one's before the second one's.
template <class D>
std::vector<typename D::Bits> entries(Step<D>& step, const Row& row, const Vector<D>& first,
                                      const Vector<D>* second) {
  std::vector<typename D::Bits> all;
  const int count = step.vector_bits / row.bits;
  for (int i = 0; i < count; ++i) all.push_back(lane(step.domain, first, row.bits, i));
  for (int i = 0; second != nullptr && i < count; ++i) {
    all.push_back(lane(step.domain, *second, row.bits, i));
  }
  return all;
}
/// Entries of one table, or of two, by the low bits of each lane of `indices`.
template <class D>
void permute(Step<D>& step, const Row& row, const Vector<D>& indices, const Vector<D>& first,
             const Vector<D>* second = nullptr) {
  const int count = step.vector_bits / row.bits;
  const int index_bits = std::countr_zero(static_cast<unsigned>(count)) + (second ? 1 : 0);
  std::vector<typename D::Bits> all;
  for (int i = 0; i < count; ++i) {
    const auto index = step.domain.extract(lane(step.domain, indices, row.bits, i), 0, index_bits);
    if (const auto known = D::value_of(index)) {
      const int number = static_cast<int>(*known);
      step.move(row.bits, i, number < count ? first : *second, number % count);
    } else {
      if (all.empty()) all = entries(step, row, first, second);
      set_lane(step.domain, step.result, i, step.domain.look_up(all, index));
    }
  }
}

constexpr auto permute_one = [](auto& step, const Row& row) {
  permute(step, row, step.from[0], step.from[1]);
};
/// Looks up in two tables; the destination is the indices, or the first table.
constexpr auto permute_by_old = [](auto& step, const Row& row) {
  permute(step, row, step.old, step.from[0], &step.from[1]);
};
constexpr auto permute_with_old = [](auto& step, const Row& row) {
  permute(step, row, step.from[0], step.old, &step.from[1]);
};
/// vpermq: by the immediate within 256 bits, where there is one; else by a vector.
constexpr auto permute_quadwords = [](auto& step, const Row& row) {
  if (step.immediate < 0) return permute_one(step, row);
  for (int i = 0; i < step.vector_bits / 64; ++i) {
    const int from = i / 4 * 4 + (step.immediate >> (2 * (i % 4)) & 3);
    step.move(64, i, 0, from);
  }
};

constexpr Row table[] = {
    row_by(ZYDIS_MNEMONIC_VPUNPCKLBW, 8, 8, unpack<false>),
    row_by(ZYDIS_MNEMONIC_VPUNPCKLWD, 16, 16, unpack<false>),
    row_by(ZYDIS_MNEMONIC_VPUNPCKLDQ, 32, 32, unpack<false>),
    row_by(ZYDIS_MNEMONIC_VPUNPCKLQDQ, 64, 64, unpack<false>),
    row_by(ZYDIS_MNEMONIC_VPUNPCKHBW, 8, 8, unpack<true>),
    row_by(ZYDIS_MNEMONIC_VPUNPCKHWD, 16, 16, unpack<true>),
    row_by(ZYDIS_MNEMONIC_VPUNPCKHDQ, 32, 32, unpack<true>),
    row_by(ZYDIS_MNEMONIC_VPUNPCKHQDQ, 64, 64, unpack<true>),
    row_by(ZYDIS_MNEMONIC_VPACKSSDW, 16, 32, pack<true>),
    row_by(ZYDIS_MNEMONIC_VPACKSSWB, 8, 16, pack<true>),
    row_by(ZYDIS_MNEMONIC_VPACKUSDW, 16, 32, pack<false>),
    row_by(ZYDIS_MNEMONIC_VPACKUSWB, 8, 16, pack<false>),
    row_by(ZYDIS_MNEMONIC_VPSHUFB, 8, 8, shuffle_bytes),
    row_by(ZYDIS_MNEMONIC_VPERMILPS, 32, 32, permute_within_128),
    row_by(ZYDIS_MNEMONIC_VSHUFPS, 32, 32, shuffle_two),
    row_by(ZYDIS_MNEMONIC_VSHUFI32X4, 32, 32, shuffle_parts),
    row_by(ZYDIS_MNEMONIC_VPERM2I128, 64, 64, pick_halves),
    row_by(ZYDIS_MNEMONIC_VPERMB, 8, 8, permute_one),
    row_by(ZYDIS_MNEMONIC_VPERMW, 16, 16, permute_one),
    row_by(ZYDIS_MNEMONIC_VPERMD, 32, 32, permute_one),
    row_by(ZYDIS_MNEMONIC_VPERMQ, 64, 64, permute_quadwords),
    row_by(ZYDIS_MNEMONIC_VPERMI2B, 8, 8, permute_by_old),
    row_by(ZYDIS_MNEMONIC_VPERMI2W, 16, 16, permute_by_old),
    row_by(ZYDIS_MNEMONIC_VPERMI2D, 32, 32, permute_by_old),
    row_by(ZYDIS_MNEMONIC_VPERMI2Q, 64, 64, permute_by_old),
    row_by(ZYDIS_MNEMONIC_VPERMT2B, 8, 8, permute_with_old),
    row_by(ZYDIS_MNEMONIC_VPERMT2W, 16, 16, permute_with_old),
    row_by(ZYDIS_MNEMONIC_VPERMT2D, 32, 32, permute_with_old),
    row_by(ZYDIS_MNEMONIC_VPERMT2Q, 64, 64, permute_with_old),
};

}  // namespace

std::span<const Row> shuffle_rows() { return table; }

}  // namespace castor::machine
