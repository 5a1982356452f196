// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/scaled_codes.hpp"

#include "jit/emit/block_emitter.hpp"
#include "jit/emit/control_flow.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

using namespace small_float;
using Xbyak::Opmask;
using Xbyak::Zmm;

// Registers with one meaning for the whole function (CodeScaler::taken_vectors).
const Zmm order(31);      ///< brings codes, or the bytes that have them, in order
const Zmm low_bytes(30);  ///< the lower byte of each code's word
const Zmm more_low(29);   ///< the same byte for codes from 64 on
const Zmm high_bytes(28);
const Zmm more_high(27);
const Zmm signs(26);  ///< the highest bit of each byte
const Zmm significands(25);
const Zmm corrections(24);  ///< added to products: what rounds them, less their numbers
const Zmm ones(23);
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

uint32_t number_in_table(int lane) { return 2 * static_cast<uint32_t>(lane) + 1; }

}  // namespace

bool scales_codes(const Nest& nest, const NestForm& form, const Target& target) {
  if (!scales_contiguous_codes(nest, form, target)) return false;
  const ScaledCodes& scaled = nest.program.scaled_codes;
  const Access scales = form.access[static_cast<size_t>(scaled.scales)];
  const ElementType element = nest.element(static_cast<size_t>(scaled.codes));
  if (bits_of(element) != 8 || !has_plain_signs(element)) return false;
  const bool is_row = scales == Access::uniform;
  const bool is_block = scales == Access::repeated && form.baked_period == 32;
  return (is_row || is_block) && CodeWords(element).classes.size() <= table_lanes;
}

CodeScaler::CodeScaler(const Nest& nest, const NestForm& form, Assembler& code, const Frame& frame,
                       NestLoops& loops)
    : BlockEmitter(nest, form, code, frame, loops),
      codes_(static_cast<size_t>(nest.program.scaled_codes.codes)),
      scales_(static_cast<size_t>(nest.program.scaled_codes.scales)),
      are_powers_(nest.program.scaled_codes.are_powers != 0),
      words_(nest.element(codes_)) {}

/// The class whose product a lane of the table has; null: none.
const CodeClass* CodeScaler::class_of_lane(int lane) const {
  const auto index = static_cast<size_t>(lane);
  return index < words_.classes.size() ? &words_.classes[index] : nullptr;
}

/// A byte of the words of 64 codes.
std::vector<uint8_t> CodeScaler::words_byte(int vector, int byte) const {
  return vector_constant<uint8_t>(512, [&](int i) {
    const size_t code = static_cast<size_t>(vector) * 64 + static_cast<size_t>(i);
    const auto number = static_cast<int>(number_in_table(words_.class_of[code]));
    return (words_.words[code] + number) >> (8 * byte);
  });
}

/// Unpacking takes the lower and the upper eight bytes of each 128-bit part: elements 8 p to 8 p +
/// 7 of each half of the group belong there, which are pairs of 32-bit lanes.
std::vector<uint8_t> CodeScaler::order_of_codes() const {
  return vector_constant<uint32_t>(512, [](int i) {
    const int part = i / 4;
    return (i % 4 / 2) * 8 + part * 2 + i % 2;
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
  emit_load(more_low, words_byte(1, 0));
  emit_load(more_high, words_byte(1, 1));
  emit_load(signs, repeated_constant<uint8_t>(512, 0x80));
  const auto number = [&](int lane) { return number_in_table(lane) << 16; };
  if (are_powers_) {
    // A power's f32 is its exponent alone, which is added to that of the significand, 0 here.
    emit_load(significands, table_constant([&](int lane, const CodeClass& own) {
                const uint32_t one = own.is_number ? uint32_t{bias} << f32_mantissa_bits : 0;
                return own.significand - one - number(lane);
              }));
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

/// The table of a scale; `block` counts from gpr::period.
void CodeScaler::emit_table(int block) {
  const Section section = code_.section(CodeSection::scale_table);
  constexpr int scale_bytes = 4;
  const Xbyak::Reg64 scales = frame_.emit_pointer(scales_);
  const auto scale = [&](const Xbyak::AddressFrame& frame) {
    if (block_ == 0) return frame[scales];
    return frame[scales + gpr::period * scale_bytes + block * scale_bytes];
  };
  if (are_powers_) {
    code_.vpbroadcastd(temporary | number_lanes | Xbyak::util::T_z, scale(code_.ptr));
    return code_.vpaddd(table, significands, temporary);
  }
  code_.vmulps(table, significands, scale(code_.ptr_b));
  code_.vpsrld(temporary, table, 16);
  code_.vpandd(temporary, temporary, ones);
  code_.vpaddd(table, table, temporary);
  code_.vpaddd(table, table, corrections);
}

/// low, high = the bytes of the words of a group's codes.
void CodeScaler::emit_words(int group) {
  const Section section = code_.section(CodeSection::scaled_codes);
  const Xbyak::Reg64 from = frame_.emit_pointer(codes_);
  code_.vpermd(codes, order, code_.ptr[from + gpr::index + group * group_elements]);
  code_.vmovdqa64(low, codes);
  code_.vpermi2b(low, low_bytes, more_low);
  code_.vmovdqa64(high, codes);
  code_.vpermi2b(high, high_bytes, more_high);
  constexpr uint8_t a_xor_b_and_c = 0x78;
  code_.vpternlogd(high, codes, signs, a_xor_b_and_c);
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
  const int first = (2 * group + half) * group_elements;
  emit_result(code_.ptr[frame_.emit_pointer(sink_) + gpr::index * 2 + first], codes, stores);
}

void CodeScaler::emit_group(int group, Stores stores) {
  emit_words(group);
  for (int half = 0; half < 2; ++half) {
    if (block_ != 0) emit_table(2 * group + half);
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
  emit_unless_row_is_done(code_, [&] { emit_row_loop(1, stores); });
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
      emit_by_alignment([&](Stores stores) { emit_row_loops(stores); });
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
    for (int group = 0; group < elements / group_elements; ++group) emit_group(group, stores);
    const Section next = code_.section(CodeSection::next_iteration);
    code_.add(gpr::period, scales_per_iteration);
  });
  code_.L(exit);
}

}  // namespace castor::jit
