// SPDX-License-Identifier: Apache-2.0
// The table of instructions: what each vector, mask and tile instruction that castor emits does.
//
// A meaning is written once, over a domain: as numbers it carries the instruction out (emulator),
// as terms it says of each bit of the result what it is (tools/prove). Meanings: Intel SDM, volume
// 2, and "Intel AVX512-FP16 Architecture Specification". instruction_test runs each form that
// castor emits on the CPU, where it has it.
#pragma once

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <span>
#include <type_traits>
#include <vector>

#include "tools/machine/numbers.hpp"
#include "tools/machine/symbols.hpp"

namespace castor::machine {

/// A vector register, or what a memory operand holds: the first byte is the lowest.
template <class D>
using Vector = std::array<typename D::Byte, 64>;
/// An opmask, bit by bit.
template <class D>
using Mask = std::array<typename D::Bits, 64>;

template <class D>
typename D::Bits lane(D& domain, const Vector<D>& vector, int bits, int index) {
  return domain.join(vector.data() + index * bits / 8, bits / 8);
}
template <class D>
void set_lane(D& domain, Vector<D>& vector, int index, typename D::Bits value) {
  domain.split(value, vector.data() + index * D::width(value) / 8);
}
template <class D>
Vector<D> zero_vector(D& domain) {
  Vector<D> vector;
  vector.fill(domain.byte(0));
  return vector;
}
template <class D>
Mask<D> zero_mask(D& domain) {
  Mask<D> mask;
  mask.fill(domain.constant(1, 0));
  return mask;
}

/// The operands of one instruction, and where its meaning puts the result.
template <class D>
struct Step {
  using Bits = typename D::Bits;

  D& domain;
  int vector_bits = 0;  ///< 128, 256 or 512
  int immediate = 0;
  Rounding rounding = Rounding::nearest_even;
  Vector<D> old{};                  ///< the destination before
  std::array<Vector<D>, 3> from{};  ///< vector operands after the destination, memory ones included
  std::array<Mask<D>, 2> masks{};   ///< opmasks after the destination
  Bits general{};                   ///< a general register after the destination, its bits as read
  Mask<D> writemask{};              ///< all ones where there is none

  Vector<D> result{};     ///< zero before the meaning runs
  Mask<D> result_mask{};  ///< the same
  Bits result_general{};  ///< where a general register is written
  Bits zero_flag{};       ///< where flags are set
  Bits carry_flag{};

  Bits source(int operand, int bits, int index) {
    return lane(domain, from[static_cast<size_t>(operand)], bits, index);
  }
  Bits constant(int width, uint64_t value) { return domain.constant(width, value); }

  /// Makes a lane of the result that of an operand, byte by byte: lanes of other widths in it stay
  /// what they are.
  void move(int bits, int to, const Vector<D>& operand, int index) {
    const auto first = operand.begin() + index * bits / 8;
    std::copy(first, first + bits / 8, result.begin() + to * bits / 8);
  }
  void move(int bits, int to, int operand, int index) {
    move(bits, to, from[static_cast<size_t>(operand)], index);
  }
  /// Makes a lane of the result that of one of two operands.
  void choose(int bits, int i, const Bits& condition, const Vector<D>& yes, const Vector<D>& no) {
    if (const auto known = D::value_of(condition)) return move(bits, i, *known != 0 ? yes : no, i);
    set_lane(domain, result, i,
             domain.select(condition, lane(domain, yes, bits, i), lane(domain, no, bits, i)));
  }
};

/// What an instruction writes, and how its writemask works.
enum class Effect : uint8_t {
  lanes,        ///< a vector; lanes that the mask leaves out keep their value or become zero
  all,          ///< a vector, whatever the writemask says: the meaning has used it
  mask,         ///< an opmask; bits that the writemask leaves out are zero
  general,      ///< a general register
  flags,        ///< ZF and CF
  tile_product  ///< a tile, by the dot product of each of its lanes
};

/// Which lanes of an operand in memory are touched.
enum class Touched : uint8_t {
  lanes,     ///< those of the writemask
  all,       ///< all, if the writemask has any bit
  by_vector  ///< those whose lane of the first operand after the destination is negative
};

struct Row;
template <class D>
using Meaning = void (*)(Step<D>& step, const Row& row);

/// One instruction.
struct Row {
  ZydisMnemonic mnemonic = ZYDIS_MNEMONIC_INVALID;
  uint8_t bits = 0;         ///< a lane of the result has: what a bit of the writemask selects
  uint8_t source_bits = 0;  ///< a lane of the sources has
  uint16_t part_bits = 0;   ///< a part has that is put into a vector, repeated or taken out
  Effect effect = Effect::lanes;
  Touched touched = Touched::lanes;
  bool takes_out = false;  ///< the result is a part of the source
  Meaning<Numbers> on_numbers = nullptr;
  Meaning<Symbols> on_terms = nullptr;
  /// Whether the row is about that immediate; null: about all.
  bool (*admits)(int immediate) = nullptr;

  template <class D>
  Meaning<D> on() const {
    if constexpr (std::is_same_v<D, Numbers>) {
      return on_numbers;
    } else {
      return on_terms;
    }
  }
  int lanes(int vector_bits) const { return vector_bits / std::max(bits, source_bits); }
  /// Lanes of the result, of which a part that is taken out has fewer.
  int result_lanes(int vector_bits) const {
    return takes_out ? part_bits / bits : lanes(vector_bits);
  }
};

/// Null for an instruction that no row has. Comparisons have one row for VEX, whose result is a
/// vector, and one for EVEX, whose result is an opmask.
const Row* row_of(const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand* operands);
/// Every row, part by part.
std::vector<const Row*> all_rows();

// The parts of the table, each a source.
std::span<const Row> integer_rows();
std::span<const Row> integer_mask_rows();
std::span<const Row> shift_rows();
std::span<const Row> product_rows();
std::span<const Row> move_rows();
std::span<const Row> shuffle_rows();
std::span<const Row> resize_rows();
std::span<const Row> mask_rows();
std::span<const Row> float_rows();
std::span<const Row> float_mask_rows();
std::span<const Row> conversion_rows();

}  // namespace castor::machine
