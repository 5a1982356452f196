// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/scaled_codes.hpp"

#include <algorithm>

#include "ir/types/storage.hpp"
#include "jit/emit/block_scales.hpp"
#include "jit/emit/control_flow.hpp"
#include "jit/emit/vector_constant.hpp"
#include "jit/lower/small_values.hpp"

namespace castor::jit {

namespace {

using Xbyak::Opmask;
using Xbyak::Zmm;

// Registers with one meaning for the whole function (CodeScaler::taken_vectors).
const Zmm order(31);      ///< brings codes, or the bytes that have them, in order
const Zmm low_bytes(30);  ///< the lower byte of each code's word
const Zmm more_low(29);   ///< the same byte for codes from 64 on
const Zmm high_bytes(28);
const Zmm more_high(27);
const Zmm signs(26);      ///< the highest bit of each byte (codes of 8 bits)
const Zmm shifts(26);     ///< where each code is in its eight bytes (codes of 4 bits)
const Zmm positions(29);  ///< what is added to a code's number for its block
const Zmm significands(25);
const Zmm corrections(24);  ///< added to products: what rounds them, less their numbers
const Zmm ones(23);
const Zmm spread(27);  ///< gives each block its lanes of a table common to blocks
const Zmm table(22);
const Zmm codes(21);
const Zmm low(20);
const Zmm high(19);
const Zmm temporary(18);
const Opmask number_lanes(7);
const Opmask out_of_range(6);

constexpr int group_elements = 64;
constexpr int table_lanes = 16;
constexpr uint32_t magnitude_bits = 0x7fffffff;

constexpr int bf16_mantissa_bits = 7;
constexpr int f32_mantissa_bits = 23;
constexpr int bias = 127;
constexpr uint16_t bf16_sign = 0x8000;
constexpr uint16_t bf16_infinity = 0x7f80;

/// Whether negative codes have the words of positive ones with another sign.
bool has_plain_signs(const ByteTable& converted, int code_bits) {
  const size_t half = size_t{1} << (code_bits - 1);
  for (size_t code = 0; code < half; ++code) {
    if ((converted.entries[code] ^ bf16_sign) != converted.entries[code + half]) return false;
  }
  return true;
}

uint32_t number_in_table(int lane) { return 2 * static_cast<uint32_t>(lane) + 1; }

/// Lanes of the table for each block: four blocks of 16 have one together.
int lanes_for_block(int block) { return block == 16 ? table_lanes / 4 : table_lanes; }

}  // namespace

/// Classes, words and the range of scales follow from what codes are as bf16.
CodeWords::CodeWords(ElementType type) {
  const ByteTable converted = *conversion_table(type, ElementType::bf16, {});
  constexpr uint16_t mantissa_mask = (1 << bf16_mantissa_bits) - 1;
  int least = bias;
  int greatest = -bias;
  for (size_t i = 0; i < size_t{1} << bits_of(type); ++i) {
    const uint16_t number = converted.entries[i];
    const uint16_t magnitude = number & static_cast<uint16_t>(~bf16_sign);
    const bool is_number = magnitude != 0 && magnitude < bf16_infinity;
    const int exponent = is_number ? (magnitude >> bf16_mantissa_bits) - bias : 0;
    const int stands_for =
        is_number ? bias << bf16_mantissa_bits | (magnitude & mantissa_mask) : magnitude;
    const CodeClass own = {static_cast<uint32_t>(stands_for) << 16, is_number};
    const auto same = std::ranges::find_if(classes, [&](const CodeClass& each) {
      return each.significand == own.significand && each.is_number == own.is_number;
    });
    const auto index = static_cast<int>(same - classes.begin());
    if (same == classes.end()) classes.push_back(own);
    if (is_number) {
      least = std::min(least, exponent);
      greatest = std::max(greatest, exponent);
    }
    words[i] = static_cast<uint16_t>((number & bf16_sign) + exponent * (1 << bf16_mantissa_bits) +
                                     static_cast<int>(number_in_table(index)));
  }
  // Products of the scale's exponent plus `least` are normal, those of `greatest` have room for a
  // significand below 2 times another, rounded up; so have the table's own, whose exponent is 0.
  const int first = std::max(1 - bias, 1 - bias - least);
  const int last = std::min(bias - 2, bias - 2 - greatest);
  scales.min = static_cast<uint32_t>(first + bias) << f32_mantissa_bits;
  scales.limit = static_cast<uint32_t>(last + bias + 1) << f32_mantissa_bits;
}

bool scales_codes(const Nest& nest, const NestForm& form, const Target& target) {
  const ScaledCodes& scaled = nest.program.scaled_codes;
  if (!scaled.exist() || !target.supports(Feature::avx512_vbmi)) return false;
  const auto codes_operand = static_cast<size_t>(scaled.codes);
  const Access scales = form.access[static_cast<size_t>(scaled.scales)];
  if (form.access[codes_operand] != Access::contiguous) return false;
  if (form.access.back() != Access::contiguous) return false;
  const ElementType element = nest.element(codes_operand);
  const int bits = bits_of(element);
  if (bits != 8 && !(bits == 4 && info(element).order == StorageOrder::lsb_first)) return false;
  if (!has_plain_signs(*conversion_table(element, ElementType::bf16, {}), bits)) return false;
  const bool is_row = scales == Access::uniform && bits == 8;  // row tables do fewer bits
  const bool is_block = scales == Access::repeated &&
                        (form.baked_period == 32 || (form.baked_period == 16 && bits == 4));
  const auto lanes = static_cast<size_t>(lanes_for_block(is_block ? form.baked_period : 0));
  return (is_row || is_block) && CodeWords(element).classes.size() <= lanes;
}

CodeScaler::CodeScaler(const Nest& nest, const NestForm& form, Assembler& code, const Frame& frame,
                       NestLoops& loops)
    : code_(code),
      frame_(frame),
      loops_(loops),
      stores_(form.stores),
      codes_(static_cast<size_t>(nest.program.scaled_codes.codes)),
      scales_(static_cast<size_t>(nest.program.scaled_codes.scales)),
      sink_(nest.inputs.size()),
      are_powers_(nest.program.scaled_codes.are_powers != 0),
      code_bits_(bits_of(nest.element(codes_))),
      block_(form.access[scales_] == Access::repeated ? form.baked_period : 0),
      words_(nest.element(codes_)) {}

int CodeScaler::elements_per_iteration() const { return scales_per_iteration * block_; }

/// The class whose product a lane of the table has; null: none.
const CodeClass* CodeScaler::class_of_lane(int lane) const {
  const auto index = static_cast<size_t>(lane % lanes_for_block(block_));
  return index < words_.classes.size() ? &words_.classes[index] : nullptr;
}

/// A byte of the words of 64 codes; 16 codes four times.
std::vector<uint8_t> CodeScaler::words_byte(int vector, int byte) const {
  return vector_constant<uint8_t>(512, [&](int i) {
    const size_t code = (static_cast<size_t>(vector) * 64 + static_cast<size_t>(i)) &
                        ((size_t{1} << code_bits_) - 1);
    return words_.words[code] >> (8 * byte);
  });
}

/// Unpacking takes the lower and the upper eight bytes of each 128-bit part: elements 8 p to 8 p +
/// 7 of each half of the group belong there. Codes of 8 bits: pairs of 32-bit lanes; codes of 4
/// bits: the four bytes of eight codes, twice.
std::vector<uint8_t> CodeScaler::order_of_codes() const {
  if (code_bits_ == 8) {
    return vector_constant<uint32_t>(512, [](int i) {
      const int part = i / 4;
      return (i % 4 / 2) * 8 + part * 2 + i % 2;
    });
  }
  return vector_constant<uint8_t>(512, [](int i) {
    const int part = i / 16;
    return (i % 16 / 8) * 16 + part * 4 + i % 4;
  });
}

template <class ValueOf>
std::vector<uint8_t> CodeScaler::table_constant(ValueOf value) const {
  return vector_constant<uint32_t>(512, [&](int lane) {
    const CodeClass* own = class_of_lane(lane);
    return own == nullptr ? 0 : value(lane, *own);
  });
}

void CodeScaler::emit_constants() {
  const auto emit_load = [&](const Zmm& to, const std::vector<uint8_t>& bytes) {
    code_.vmovups(to, code_.constant(bytes));
  };
  emit_load(order, order_of_codes());
  emit_load(low_bytes, words_byte(0, 0));
  emit_load(high_bytes, words_byte(0, 1));
  if (code_bits_ == 8) {
    emit_load(more_low, words_byte(1, 0));
    emit_load(more_high, words_byte(1, 1));
    emit_load(signs, repeated_constant<uint8_t>(512, 0x80));
  } else {
    emit_load(shifts, vector_constant<uint8_t>(512, [](int i) { return i % 8 * 4; }));
  }
  if (has_common_table()) {
    // Each part of 16 bytes has eight elements of both halves of a group.
    emit_load(positions, vector_constant<uint8_t>(512, [&](int i) {
                const int block = (i % 16 / 8) * 2 + i / 32;
                return static_cast<int>(number_in_table(block * lanes_for_block(block_))) - 1;
              }));
    emit_load(spread, vector_constant<uint32_t>(512, [](int i) { return i / 4; }));
  }
  const auto number = [&](int lane) { return number_in_table(lane) << 16; };
  if (are_powers_) {
    // A power's f32 is its exponent alone, which is added to that of the significand, 0 here.
    emit_load(significands, table_constant([&](int lane, const CodeClass& own) {
                const uint32_t one = own.is_number ? uint32_t{bias} << f32_mantissa_bits : 0;
                return own.significand - one - number(lane);
              }));
    code_.vmovdqa64(table, significands);
    uint32_t lanes = 0;
    for (int lane = 0; lane < table_lanes; ++lane) {
      const CodeClass* own = class_of_lane(lane);
      if (own != nullptr && own->is_number) lanes |= 1u << lane;
    }
    code_.mov(gpr::scratch.cvt32(), lanes);
    code_.kmovd(number_lanes, gpr::scratch.cvt32());
  } else {
    constexpr uint32_t below_half = 0x7fff;
    emit_load(significands,
              table_constant([](int, const CodeClass& own) { return own.significand; }));
    emit_load(corrections, table_constant([&](int lane, const CodeClass&) {
                return below_half - number(lane);
              }));
    emit_load(ones, repeated_constant<uint32_t>(512, 1));
  }
}

/// The table of a block, or of four that have one together; `first_block` counts from gpr::period.
void CodeScaler::emit_table(int first_block) {
  const Section section = code_.section(CodeSection::scale_table);
  constexpr int scale_bytes = 4;
  const Xbyak::Reg64 scales = frame_.emit_pointer(scales_);
  const auto address = [&](const Xbyak::AddressFrame& frame) {
    if (block_ == 0) return frame[scales];
    return frame[scales + gpr::period * scale_bytes + first_block * scale_bytes];
  };
  if (has_common_table()) {
    code_.vbroadcastf32x4(temporary, address(code_.ptr));
    code_.vpermilps(temporary, temporary, spread);
  }
  if (are_powers_) {
    if (has_common_table()) return code_.vpaddd(table | number_lanes, significands, temporary);
    return code_.vpaddd(table | number_lanes, significands, address(code_.ptr_b));
  }
  if (has_common_table()) {
    code_.vmulps(table, significands, temporary);
  } else {
    code_.vmulps(table, significands, address(code_.ptr_b));
  }
  code_.vpsrld(temporary, table, 16);
  code_.vpandd(temporary, temporary, ones);
  code_.vpaddd(table, table, temporary);
  code_.vpaddd(table, table, corrections);
}

/// low, high = the bytes of the words of a group's codes.
void CodeScaler::emit_words(int group) {
  const Section section = code_.section(CodeSection::scaled_codes);
  const Xbyak::Reg64 from = frame_.emit_pointer(codes_);
  if (code_bits_ == 8) {
    code_.vpermd(codes, order, code_.ptr[from + gpr::index + group * group_elements]);
    code_.vmovdqa64(low, codes);
    code_.vpermi2b(low, low_bytes, more_low);
    code_.vmovdqa64(high, codes);
    code_.vpermi2b(high, high_bytes, more_high);
    constexpr uint8_t a_xor_b_and_c = 0x78;
    return code_.vpternlogd(high, codes, signs, a_xor_b_and_c);
  }
  code_.vbroadcasti64x4(codes, code_.ptr[from + gpr::counter + group * group_elements / 2]);
  code_.vpermb(codes, order, codes);
  code_.vpmultishiftqb(codes, shifts, codes);
  code_.vpermb(low, codes, low_bytes);
  code_.vpermb(high, codes, high_bytes);
  if (has_common_table()) code_.vpaddb(low, low, positions);
}

void CodeScaler::emit_half(int group, int half, Stores stores) {
  {
    const Section section = code_.section(CodeSection::scaled_codes);
    if (half == 0) {
      code_.vpunpcklbw(codes, low, high);
    } else {
      code_.vpunpckhbw(codes, low, high);
    }
    code_.vpermw(temporary, codes, table);
    code_.vpaddw(codes, codes, temporary);
  }
  const Section section = code_.section(CodeSection::stores);
  const Xbyak::Address to =
      code_.ptr[frame_.emit_pointer(sink_) + gpr::index * 2 + (2 * group + half) * group_elements];
  stores == Stores::streaming ? code_.vmovntps(to, codes) : code_.vmovups(to, codes);
}

void CodeScaler::emit_group(int group, Stores stores) {
  emit_words(group);
  if (has_common_table()) emit_table(group * group_elements / block_);
  for (int half = 0; half < 2; ++half) {
    if (block_ == group_elements / 2) emit_table(2 * group + half);
    emit_half(group, half, stores);
  }
}

void CodeScaler::emit_row_loop(int groups, Stores stores) {
  loops_.emit_main_loop(groups * group_elements, [&] {
    for (int group = 0; group < groups; ++group) emit_group(group, stores);
  });
}

void CodeScaler::emit_row_loops(Stores stores) {
  emit_row_loop(2, stores);
  emit_row_loop(1, stores);
}

void CodeScaler::emit_row() {
  const Section check = code_.section(CodeSection::scale_check);
  const Xbyak::Reg32 scale = gpr::scratch.cvt32();
  code_.mov(scale, code_.dword[frame_.emit_pointer(scales_)]);
  if (!are_powers_) code_.and_(scale, magnitude_bits);
  code_.cmp(scale, words_.scales.min);
  emit_unless(code_, Condition::less, [&] {
    code_.cmp(scale, words_.scales.limit);
    emit_unless(code_, Condition::greater_equal, [&] {
      emit_table(0);
      emit_by_alignment(code_, frame_, sink_, stores_,
                        [&](Stores stores) { emit_row_loops(stores); });
    });
  });
}

void CodeScaler::emit_blocks_loop(Stores stores) {
  const int elements = elements_per_iteration();
  Xbyak::Label exit;
  loops_.emit_main_loop(elements, [&] {
    emit_leave_if_out_of_range(code_, frame_.emit_pointer(scales_), words_.scales,
                               are_powers_ ? ScaleSigns::must_be_positive : ScaleSigns::ignored,
                               temporary, out_of_range, exit);
    if (code_bits_ == 4) {
      code_.mov(gpr::counter, gpr::index);
      code_.shr(gpr::counter, 1);
    }
    for (int group = 0; group < elements / group_elements; ++group) emit_group(group, stores);
    const Section next = code_.section(CodeSection::next_iteration);
    code_.add(gpr::period, scales_per_iteration);
  });
  code_.L(exit);
}

void CodeScaler::emit_blocks() {
  emit_by_alignment(code_, frame_, sink_, stores_,
                    [&](Stores stores) { emit_blocks_loop(stores); });
}

}  // namespace castor::jit
