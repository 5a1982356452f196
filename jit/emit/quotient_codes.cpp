// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/quotient_codes.hpp"

#include <array>
#include <bit>
#include <utility>

#include "ir/types/storage.hpp"
#include "jit/emit/bytes_of_lanes.hpp"
#include "jit/emit/vector_constant.hpp"
#include "jit/lower/small_values.hpp"

namespace castor::jit {

namespace {

using Xbyak::Opmask;
using Xbyak::Zmm;

// Registers with one meaning for the whole function (QuotientCoder::taken_vectors).
// By permutation: the lower and the upper byte of each 16-bit lane of two vectors. By merges: the
// order of results; the upper bytes of lanes.
const Zmm order(31);
const Zmm parting(30);
const Zmm all_ones(29);
const Zmm magnitudes(28);  ///< the bits of words that are not the sign
const Zmm positions(27);   ///< the bits of bytes that are a position in an octave
const Zmm codes(26);       ///< by octave and limits
const Zmm bases(25);       ///< by block, twice: what magnitudes are counted from
const Zmm limits(24);      ///< by block: the positions of 1.25, 1.5 and 1.75, a byte each
const Zmm top(23);         ///< the largest magnitudes of an iteration
const Zmm low(22);         ///< a group's floats, then bytes of them
const Zmm high(21);
const Zmm signs(20);
const Zmm temporary(19);
const Zmm divisors(18);
const Zmm slack(17);  ///< half an ulp of quotients from 1 to 2, times the divisor, of either sign
const Zmm work(16);
const Opmask chosen(7);

constexpr int group_elements = 64;
constexpr int groups_per_iteration = 4;
constexpr int f32_mantissa_bits = 23;
constexpr int f32_bias = 127;
constexpr int bf16_bits = 16;
constexpr int bf16_mantissa_bits = 7;
constexpr int octave = 1 << bf16_mantissa_bits;
constexpr int infinity = 0x7f80;
/// Octaves that are counted: from an eighth of the divisor, below which codes are 0, to sixteen.
constexpr int octaves = 8;
constexpr int first_octave = -3;

// Predicates of comparisons, of floats and of unsigned integers alike.
constexpr uint8_t not_greater = 2;
constexpr uint8_t not_less = 5;
constexpr uint8_t greater = 6;
constexpr uint8_t a_or_b_and_c = 0xf8;  // vpternlog

/// Divisors whose limits and slack are normal numbers.
constexpr ScaleRange divisor_range = {.min = uint32_t{f32_bias - 100} << f32_mantissa_bits,
                                      .limit = uint32_t{f32_bias + 100} << f32_mantissa_bits};

/// The code of quotients of an octave that reach that many of the limits 1.25, 1.5 and 1.75.
uint8_t code_of(int from_first_octave, int count) {
  constexpr std::array<int, 4> mantissas = {1, 33, 64, 96};  // next to 1 and 1.25, 1.5, 1.75
  const int exponent = from_first_octave + first_octave + f32_bias;
  const int bits = exponent << bf16_mantissa_bits | mantissas[static_cast<size_t>(count)];
  const ConvertOptions options =
      canonical_options(ElementType::bf16, ElementType::f4e2m1, {.overflow = Overflow::saturate});
  return static_cast<uint8_t>(
      converted_code(static_cast<uint64_t>(bits), ElementType::bf16, ElementType::f4e2m1, options));
}

}  // namespace

bool encodes_quotients(const Nest& nest, const NestForm& form, const Target& target) {
  const DividedFloats& divided = nest.program.divided_floats;
  if (!divided.exist() || !target.supports(Feature::avx512_vbmi)) return false;
  return form.baked_period == 16 && has_blocks(form, divided.floats, divided.divisors);
}

QuotientCoder::QuotientCoder(const Nest& nest, const NestForm& form, Assembler& code,
                             const Frame& frame, NestLoops& loops, BytesApart apart)
    : BlockEmitter(nest, form, code, frame, loops),
      floats_(static_cast<size_t>(nest.program.divided_floats.floats)),
      divisors_(static_cast<size_t>(nest.program.divided_floats.divisors)),
      apart_(apart) {}

Xbyak::Address QuotientCoder::all(uint32_t bits) {
  return code_.constant(repeated_constant<uint32_t>(512, static_cast<int>(bits)));
}
Xbyak::Address QuotientCoder::bytes(int value) {
  return code_.constant(repeated_constant<uint8_t>(512, value));
}
Xbyak::Address QuotientCoder::all(float number) { return all(std::bit_cast<uint32_t>(number)); }

void QuotientCoder::emit_constants() {
  const auto emit_load = [&](const Zmm& to, const std::vector<uint8_t>& constant) {
    code_.vmovups(to, code_.constant(constant));
  };
  emit_load(order, order_of_pairs(apart_));
  emit_load(parting, control_of_bytes(apart_, BytePart::upper));
  emit_load(all_ones, repeated_constant<uint8_t>(512, 0xff));
  emit_load(magnitudes, repeated_constant<uint16_t>(512, 0x7fff));
  emit_load(positions, repeated_constant<uint8_t>(512, octave - 1));
  emit_load(codes,
            vector_constant<uint8_t>(512, [](int i) { return code_of(i / 4 % octaves, i % 4); }));
}

/// to = the bits of the least bf16 that is above a multiple of the divisors by more than the slack:
/// that next to the multiple, or the one after.
void QuotientCoder::emit_limit(float multiple, const Zmm& to) {
  constexpr uint32_t half = 1u << (bf16_bits - 1);
  const Zmm& above = work;  // by how much the bf16 is above the multiple
  code_.vmulps(to, divisors, all(multiple));
  code_.vpaddd(to, to, all(half));
  code_.vpandd(to, to, all(~(2 * half - 1)));
  code_.vmovaps(above, to);
  code_.vfnmadd231ps(above, divisors, all(multiple));
  code_.vcmpps(chosen, above, slack, not_greater);
  code_.vpsrld(to, to, bf16_bits);
  code_.vpsubd(to | chosen, to, all_ones);
}

/// The limits of an iteration's blocks, from their divisors. Quotients of 1 and 1.25 itself are
/// below the limit there, those of 1.5 and 1.75 above it.
void QuotientCoder::emit_limits() {
  const Section section = code_.section(CodeSection::scale_table);
  constexpr float half_unit = 0x1p-24f;
  const Zmm& first = bases;
  code_.vmovups(divisors, code_.ptr[frame_.emit_pointer(divisors_) + gpr::period * 4]);
  code_.vmulps(slack, divisors, all(half_unit));
  emit_limit(1.0f, first);
  emit_limit(1.25f, limits);
  code_.vpsubd(limits, limits, first);
  code_.vmulps(slack, divisors, all(-half_unit));
  for (const auto& [multiple, shift] : {std::pair{1.5f, 8}, std::pair{1.75f, 16}}) {
    emit_limit(multiple, temporary);
    code_.vpsubd(temporary, temporary, first);
    code_.vpslld(temporary, temporary, static_cast<uint8_t>(shift));
    code_.vpord(limits, limits, temporary);
  }
  code_.vpaddd(bases, first, all(static_cast<uint32_t>(first_octave * octave)));
  code_.vpslld(temporary, bases, 16);
  code_.vpord(bases, bases, temporary);
}

/// to = what the block of each lane has in `by_block`.
template <class BlockOf>
void QuotientCoder::emit_of_blocks(const Zmm& to, const Zmm& by_block, const BlockOf& block_of) {
  code_.vmovups(to, code_.constant(vector_constant<uint32_t>(512, block_of)));
  code_.vpermd(to, to, by_block);
}

/// low, high = how far a group's magnitudes are above the bases of their blocks; and their signs.
void QuotientCoder::emit_differences(int group) {
  const Section section = code_.section(CodeSection::encoded_products);
  const Xbyak::Reg64 from = frame_.emit_pointer(floats_);
  const int begin = 2 * group * group_elements;
  code_.vmovups(low, code_.ptr[from + gpr::index * 2 + begin]);
  code_.vmovups(high, code_.ptr[from + gpr::index * 2 + begin + group_elements]);
  emit_bytes_of_lanes(code_, apart_, BytePart::upper, signs, low, high, parting);
  code_.vpandd(low, low, magnitudes);
  code_.vpandd(high, high, magnitudes);
  if (group == 0) {
    code_.vpmaxuw(top, low, high);
  } else {
    code_.vpmaxuw(top, top, low);
    code_.vpmaxuw(top, top, high);
  }
  const auto emit_less_base = [&](const Zmm& of, int first) {
    constexpr int words_of_lane = 2;
    emit_of_blocks(temporary, bases,
                   [&](int lane) { return (first + words_of_lane * lane) / block_; });
    code_.vpsubusw(of, of, temporary);
  };
  emit_less_base(low, group * group_elements);
  emit_less_base(high, group * group_elements + group_elements / 2);
}

/// The block of the elements whose limits the 32-bit lane of a vector has. The first lanes of 128
/// bits have those of the bytes there: all are of one block, or by turns of two.
int QuotientCoder::block_of_limits(int group, int lane) const {
  const int byte = lane / 4 * 16 + lane % 4;
  return (group * group_elements + element_of_byte(apart_, byte)) / block_;
}

/// low = the codes of a group, without signs.
void QuotientCoder::emit_codes(int group) {
  const Section section = code_.section(CodeSection::encoded_products);
  const Zmm& lower_control = apart_ == BytesApart::by_permutation ? order : parting;
  emit_bytes_of_lanes(code_, apart_, BytePart::lower, temporary, low, high, lower_control);
  emit_bytes_of_lanes(code_, apart_, BytePart::upper, low, low, high, parting);
  // Two octaves a byte; four times the octave.
  code_.vpminub(low, low, bytes(octaves / 2 - 1));
  code_.vpsllw(low, low, 3);
  code_.vpsrlw(high, temporary, 5);
  code_.vpternlogd(low, high, bytes(4), a_or_b_and_c);
  code_.vpandd(temporary, temporary, positions);
  emit_of_blocks(high, limits, [&](int lane) { return block_of_limits(group, lane); });
  const int next_lane = apart_ == BytesApart::by_merges ? 4 : 0;
  for (int i = 0; i < 3; ++i) {
    code_.vpshufb(work, high,
                  code_.constant(repeated_constant<uint16_t>(512, (i + next_lane) << 8 | i)));
    code_.vpcmpub(chosen, temporary, work, not_less);
    code_.vpsubb(low | chosen, low, all_ones);
  }
  code_.vpermb(low, low, codes);
}

void QuotientCoder::emit_store(int group, Stores stores) {
  emit_signed_nibbles(code_, low, signs, bytes(0x08), order, apart_);
  const int first = group * group_elements / 2;
  emit_result(code_.ptr[frame_.emit_pointer(sink_) + gpr::counter + first],
              Xbyak::Ymm(low.getIdx()), stores);
}

void QuotientCoder::emit_blocks_loop(Stores stores) {
  Xbyak::Label exit;
  loops_.emit_main_loop(elements_per_iteration(), [&] {
    emit_leave_if_out_of_range(code_, frame_.emit_pointer(divisors_), divisor_range,
                               ScaleSigns::must_be_positive, divisors, chosen, exit);
    emit_limits();
    code_.mov(gpr::counter, gpr::index);
    code_.shr(gpr::counter, 1);
    for (int group = 0; group < groups_per_iteration; ++group) {
      emit_differences(group);
      emit_codes(group);
      emit_store(group, stores);
    }
    {
      const Section check = code_.section(CodeSection::scale_check);
      code_.vpcmpuw(chosen, top, code_.constant(repeated_constant<uint16_t>(512, infinity)),
                    greater);
      code_.kortestq(chosen, chosen);
      code_.jnz(exit, Xbyak::CodeGenerator::T_NEAR);
    }
    const Section next = code_.section(CodeSection::next_iteration);
    code_.add(gpr::period, scales_per_iteration);
  });
  code_.L(exit);
}

}  // namespace castor::jit
