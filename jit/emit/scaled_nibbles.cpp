// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/scaled_nibbles.hpp"

#include <algorithm>

#include "ir/types/storage.hpp"
#include "jit/emit/control_flow.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

using namespace small_float;
using Xbyak::Opmask;
using Xbyak::Zmm;

// Registers with one meaning for the whole function (NibbleScaler::taken_vectors).
const Zmm order(31);          ///< brings each 16 bits of codes to their quarter
const Zmm first_quarter(27);  ///< cuts out the codes of a quarter; three more follow
const Zmm words(26);          ///< by code: what is added to its scale's exponent, or its product
const Zmm significands(25);   ///< those of products, by f32 lane
const Zmm code_bits(24);      ///< the bits of a code in a word
const Zmm group_codes(23);
const Zmm codes(22);
const Zmm products(21);
const Zmm table(20);
const Zmm scales(19);
const Zmm signs(18);  ///< the signs of scales, as zeros of bf16
const Zmm temporary(17);
const Zmm first_lanes(13);  ///< which scales or products a vector's codes take; three more follow
const Zmm halves(12);       ///< which of a vector's two scales, as bits above a code
const Opmask number_lanes(7);  ///< words of codes that are not zero
const Opmask out_of_range(6);
const Opmask is_odd(5);

constexpr uint32_t lowest_bf16_bit = 0x10000;
constexpr uint32_t below_half = 0x7fff;
constexpr uint32_t upper_half = 0xffff0000;
constexpr uint8_t a_and_b_or_c = 0xea;
constexpr uint8_t a_and_c_or_b = 0xec;

constexpr int scale_bytes = 4;
constexpr size_t max_significands = 2;  // eight scales have a vector of products together

/// The code whose result a word of a table has.
size_t code_of_lane(int lane) { return static_cast<size_t>(lane % 16); }

Zmm lanes_of(int vector) { return Zmm(first_lanes.getIdx() + vector); }
Zmm quarter(int i) { return Zmm(first_quarter.getIdx() + i); }

}  // namespace

bool scales_nibbles(const Nest& nest, const NestForm& form, const Target& target) {
  if (!scales_contiguous_codes(nest, form, target)) return false;
  const ScaledCodes& scaled = nest.program.scaled_codes;
  if (form.access[static_cast<size_t>(scaled.scales)] != Access::repeated) return false;
  if (form.baked_period != 16 && form.baked_period != 32) return false;
  const ElementType element = nest.element(static_cast<size_t>(scaled.codes));
  if (bits_of(element) != 4 || info(element).order != StorageOrder::lsb_first) return false;
  if (!has_plain_signs(element)) return false;
  const std::vector<CodeClass> classes = CodeWords(element).classes;
  const bool all_are_numbers =
      std::all_of(classes.begin() + 1, classes.end(), std::mem_fn(&CodeClass::is_number));
  return !classes[0].is_number && all_are_numbers && classes.size() <= 1 + max_significands;
}

NibbleScaler::NibbleScaler(const Nest& nest, const NestForm& form, Assembler& code,
                           const Frame& frame, NestLoops& loops)
    : BlockEmitter(nest, form, code, frame, loops),
      codes_(static_cast<size_t>(nest.program.scaled_codes.codes)),
      scales_(static_cast<size_t>(nest.program.scaled_codes.scales)),
      are_powers_(nest.program.scaled_codes.are_powers != 0),
      words_(nest.element(codes_)) {}

/// A vector by word and the code that it is about.
template <class ValueOf>
std::vector<uint8_t> NibbleScaler::words_constant(ValueOf value) const {
  return vector_constant<uint16_t>(512, [&](int lane) { return value(lane, code_of_lane(lane)); });
}

/// Which words of products have what each code's significand gives, and of zeros the scale's sign.
std::vector<uint8_t> NibbleScaler::lanes_by_code(int vector) const {
  return words_constant([&](int lane, size_t code) {
    const int scale = vector * scales_of_vector() + lane / block_;
    const int first_product = 2 * static_cast<int>(max_significands) * scale;
    return words_.of(code).is_number ? first_product + 2 * words_.class_of[code] - 1
                                     : first_product;
  });
}

/// Which words of the scales have a vector's exponents.
std::vector<uint8_t> NibbleScaler::exponents_by_code(int group, int vector) const {
  return words_constant([&](int lane, size_t) {
    const int scale = group * scales_of_group() + vector * scales_of_vector() + lane / block_;
    return 2 * scale + 1;
  });
}

void NibbleScaler::emit_constants() {
  const auto emit_load = [&](const Zmm& to, const std::vector<uint8_t>& bytes) {
    code_.vmovups(to, code_.constant(bytes));
  };
  // Word i of each four is of vector i of the group: codes 4 j to 4 j + 3 of it, in quadword j.
  emit_load(order, vector_constant<uint8_t>(512, [](int i) {
              const int quadword = i / 8;
              const int vector = i % 8 / 2;
              return 2 * (8 * vector + quadword) + i % 2;
            }));
  for (int vector = 0; vector < 4; ++vector) {
    emit_load(quarter(vector), vector_constant<uint8_t>(512, [&](int i) {
                return (16 * vector + 4 * (i % 8 / 2) + 8 * (i % 2)) % 64;
              }));
  }
  emit_load(code_bits, repeated_constant<uint16_t>(512, 0xf));
  if (block_ < vector_elements) {
    emit_load(halves, words_constant([&](int lane, size_t) { return lane / block_ * block_; }));
  }
  if (!are_powers_) {
    for (int vector = 0; vector < 4; ++vector) emit_load(lanes_of(vector), lanes_by_code(vector));
  }
  uint32_t numbers = 0;
  for (int lane = 0; lane < vector_elements; ++lane) {
    numbers |= words_.of(code_of_lane(lane)).is_number ? 1u << lane : 0;
  }
  code_.mov(gpr::scratch.cvt32(), numbers);
  code_.kmovd(number_lanes, gpr::scratch.cvt32());
  if (are_powers_) {
    // A power's bf16 is its exponent alone, which is added to that of the significand, 0 here.
    emit_load(words, words_constant([&](int, size_t code) {
                const CodeClass& own = words_.of(code);
                const uint32_t one = own.is_number ? uint32_t{bias} << bf16_mantissa_bits : 0;
                return words_.words[code] + (own.significand >> 16) - one;
              }));
    return;
  }
  emit_load(words, words_constant([&](int, size_t code) { return words_.words[code]; }));
  emit_load(significands, vector_constant<uint32_t>(512, [&](int lane) {
              const size_t number = 1 + static_cast<size_t>(lane) % max_significands;
              return words_.classes[std::min(number, words_.classes.size() - 1)].significand;
            }));
}

/// The products of the group's scales: two f32 lanes for each, whose upper halves are rounded, and
/// whose lower halves are zeros of their signs.
void NibbleScaler::emit_products(int group) {
  const Section section = code_.section(CodeSection::scale_table);
  const auto all = [&](uint32_t bits) {
    return code_.constant(repeated_constant<uint32_t>(512, static_cast<int>(bits)));
  };
  code_.vmovups(temporary, code_.constant(vector_constant<uint32_t>(512, [&](int lane) {
    const int scale = group * scales_of_group() + lane / static_cast<int>(max_significands);
    return scale % scales_per_iteration;
  })));
  code_.vpermd(products, temporary, scales);
  code_.vpermd(temporary, temporary, signs);
  code_.vmulps(products, products, significands);
  code_.vptestmd(is_odd, products, all(lowest_bf16_bit));
  code_.vpaddd(products, products, all(below_half));
  code_.vpaddd(products | is_odd, products, all(1));
  code_.vpternlogd(products, temporary, all(upper_half), a_and_c_or_b);
}

/// The results of a vector's scale, or of its two scales, by code.
void NibbleScaler::emit_table(int group, int vector) {
  const Section section = code_.section(CodeSection::scale_table);
  const int first = vector * scales_of_vector();
  if (are_powers_ && block_ == vector_elements) {
    const int offset = (group * scales_of_group() + first) * scale_bytes + scale_bytes / 2;
    code_.vpbroadcastw(
        temporary | number_lanes | Xbyak::util::T_z,
        code_.word[frame_.emit_pointer(scales_) + gpr::period * scale_bytes + offset]);
    return code_.vpaddw(table, words, temporary);
  }
  if (are_powers_) {
    code_.vmovups(temporary, code_.constant(exponents_by_code(group, vector)));
    code_.vpermw(temporary | number_lanes | Xbyak::util::T_z, temporary, scales);
    return code_.vpaddw(table, words, temporary);
  }
  code_.vpermw(table, lanes_of(vector), products);
  code_.vpaddw(table, table, words);
}

/// All of an iteration, where vectors take theirs from a register.
void NibbleScaler::emit_load_scales() {
  if (are_powers_ && block_ == vector_elements) return;
  const Section section = code_.section(CodeSection::scale_table);
  code_.vmovups(scales, code_.ptr[frame_.emit_pointer(scales_) + gpr::period * scale_bytes]);
  if (are_powers_) return;
  code_.vpsrld(signs, scales, 16);
  code_.vpandd(signs, signs, code_.constant(repeated_constant<uint32_t>(512, bf16_sign)));
}

void NibbleScaler::emit_group(int group, Stores stores) {
  {
    const Section section = code_.section(CodeSection::scaled_codes);
    code_.vpermb(
        group_codes, order,
        code_.ptr[frame_.emit_pointer(codes_) + gpr::counter + group * group_elements / 2]);
  }
  if (!are_powers_) emit_products(group);
  for (int vector = 0; vector < group_elements / vector_elements; ++vector) {
    emit_table(group, vector);
    {
      const Section section = code_.section(CodeSection::scaled_codes);
      code_.vpmultishiftqb(codes, quarter(vector), group_codes);
      if (block_ < vector_elements) {
        code_.vpternlogd(codes, code_bits, halves, a_and_b_or_c);
      }
      code_.vpermw(codes, codes, table);
    }
    const int first = group * group_elements + vector * vector_elements;
    emit_result(code_.ptr[frame_.emit_pointer(sink_) + gpr::index * 2 + 2 * first], codes, stores);
  }
}

void NibbleScaler::emit_blocks_loop(Stores stores) {
  Xbyak::Label exit;
  loops_.emit_prefetching_loop(elements_per_iteration(), [&] {
    emit_leave_if_out_of_range(code_, frame_.emit_pointer(scales_), words_.scales,
                               are_powers_ ? ScaleSigns::must_be_positive : ScaleSigns::ignored,
                               temporary, out_of_range, exit);
    emit_load_scales();
    code_.mov(gpr::counter, gpr::index);
    code_.shr(gpr::counter, 1);
    for (int group = 0; group < elements_per_iteration() / group_elements; ++group) {
      emit_group(group, stores);
    }
    const Section next = code_.section(CodeSection::next_iteration);
    code_.add(gpr::period, scales_per_iteration);
  });
  code_.L(exit);
}

}  // namespace castor::jit
