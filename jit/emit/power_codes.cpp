// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/power_codes.hpp"

#include <algorithm>
#include <memory>

#include "ir/types/storage.hpp"
#include "jit/emit/bytes_of_lanes.hpp"
#include "jit/emit/vector_constant.hpp"
#include "jit/lower/small_values.hpp"

namespace castor::jit {

namespace {

using Xbyak::Opmask;
using Xbyak::Zmm;

// Registers with one meaning for the whole function (PowerCoder::taken_vectors).
// By permutation: the lower and the upper byte of each 16-bit lane of two vectors. By merges: the
// order of results; the upper bytes of lanes.
const Zmm order(31);
const Zmm parting(30);
const Zmm all_ones(29);
const Zmm signs(28);  ///< the bit of each byte that has a code's sign
const Zmm table(27);  ///< mantissas, or classes of narrow codes
const Zmm more_table(26);
const Zmm limits(25);   ///< the last e - 1, or the last index of an exponent of narrow codes
const Zmm largest(24);  ///< the largest code, or the codes of narrow ones
const Zmm bases(23);    ///< by block, as i32: what exponents are counted from
const Zmm top(22);      ///< while narrow codes are made: the largest exponent of an iteration
const Zmm low(21);      ///< lower bytes of a group's floats
const Zmm high(20);
const Zmm exponents(19);  ///< those that a group's floats have
const Zmm code_bytes(18);
const Zmm temporary(17);
const Opmask chosen(7);
const Opmask others(6);

constexpr int group_elements = 64;
constexpr int groups_per_iteration = 8;
constexpr int f32_mantissa_bits = 23;
constexpr int f32_bias = 127;
constexpr int bf16_mantissa_bits = 7;
constexpr int mantissas_of_bf16 = 1 << bf16_mantissa_bits;
constexpr int max_exponent_byte = 0xff;

constexpr uint8_t less = 1;
constexpr uint8_t greater = 6;

constexpr ConvertOptions saturating = {.overflow = Overflow::saturate};

/// The code of the number with that exponent and mantissa.
int code_at(ElementType type, int exponent, int mantissa) {
  const int biased = exponent - info(type).format.bias + f32_bias;
  const ConvertOptions options = canonical_options(ElementType::bf16, type, saturating);
  return converted_code(biased << bf16_mantissa_bits | mantissa, ElementType::bf16, type, options);
}

/// A half of a table of bytes.
std::vector<uint8_t> half_of(const std::vector<uint8_t>& entries, int half) {
  return vector_constant<uint8_t>(
      512, [&](int i) { return entries[static_cast<size_t>(half * group_elements + i)]; });
}

/// Mantissas of a class are rounded alike at every exponent: multiples of `step` may be halfway, or
/// have nothing to round.
int class_of(int mantissa, int step) {
  return 2 * (mantissa / step) + (mantissa % step == 0 ? 0 : 1);
}
int mantissa_of(int number, int step) { return number / 2 * step + number % 2; }

}  // namespace

PowerCodeTables::PowerCodeTables(ElementType type)
    : mantissa_bits(info(type).format.mantissa_bits),
      first_exponent(-mantissa_bits),
      normal_exponents(0),
      bias(info(type).format.bias),
      largest_code(0) {
  largest_code = code_at(type, max_exponent_byte - f32_bias + bias - 1, 0);
  normal_exponents = largest_code >> mantissa_bits;
  const bool is_narrow = bits_of(type) == 4;
  const int step = is_narrow ? 32 : 16;
  // Narrow codes have an index for exponents whose results are zero.
  const int indices = is_narrow ? 8 : 4;
  const int first = is_narrow ? first_exponent - 1 : first_exponent;
  for (int mantissa = 0; mantissa < mantissas_of_bf16; ++mantissa) {
    mantissas.push_back(static_cast<uint8_t>(code_at(type, 1, mantissa)));
    classes.push_back(static_cast<uint8_t>(class_of(mantissa, step) * indices));
  }
  for (int number = 0; number < 2 * mantissas_of_bf16 / step; ++number) {
    for (int i = 0; i < indices; ++i) {
      const int code = code_at(type, first + i, mantissa_of(number, step));
      codes.push_back(static_cast<uint8_t>(code));
    }
  }
  // The exponent byte of a power is counted down: a byte of x plus that of the power, less
  // 254 - bias, is e. Where e is first_exponent - 1 for the byte 0, results are zero for it; and e
  // is no exponent of a normal result for the byte 255, nor for the byte 0, modulo 256.
  const int last = 2 * f32_bias - 1 - bias - mantissa_bits;
  const int smallest = is_narrow ? 1 : std::max(1, normal_exponents - bias);
  powers.min = static_cast<uint32_t>(smallest) << f32_mantissa_bits;
  powers.limit = static_cast<uint32_t>(last + 1) << f32_mantissa_bits;
}

bool encodes_powers(const Nest& nest, const NestForm& form, const Target& target) {
  const ScaledFloats& scaled = nest.program.scaled_floats;
  if (!scaled.exist() || !target.supports(Feature::avx512_vbmi)) return false;
  return form.baked_period == 32 && has_blocks(form, scaled.floats, scaled.powers);
}

PowerCoder::PowerCoder(const Nest& nest, const NestForm& form, Assembler& code, const Frame& frame,
                       NestLoops& loops, BytesApart apart)
    : BlockEmitter(nest, form, code, frame, loops),
      floats_(static_cast<size_t>(nest.program.scaled_floats.floats)),
      powers_(static_cast<size_t>(nest.program.scaled_floats.powers)),
      code_bits_(bits_of(nest.program.sinks[0].element)),
      apart_(apart),
      tables_(nest.program.sinks[0].element) {}

Xbyak::Address PowerCoder::bytes(int value) {
  return code_.constant(repeated_constant<uint8_t>(512, value));
}

void PowerCoder::emit_constants() {
  const auto emit_load = [&](const Zmm& to, const std::vector<uint8_t>& constant) {
    code_.vmovups(to, code_.constant(constant));
  };
  const bool merges = apart_ == BytesApart::by_merges;
  emit_load(order, merges && !has_narrow_codes() ? order_of_merged() : order_of_pairs(apart_));
  emit_load(parting, control_of_bytes(apart_, BytePart::upper));
  emit_load(all_ones, repeated_constant<uint8_t>(512, 0xff));
  const std::vector<uint8_t>& by_mantissa =
      has_narrow_codes() ? tables_.classes : tables_.mantissas;
  emit_load(table, half_of(by_mantissa, 0));
  emit_load(more_table, half_of(by_mantissa, 1));
  if (has_narrow_codes()) {
    emit_load(signs, repeated_constant<uint8_t>(512, 0x08));
    emit_load(limits, repeated_constant<uint8_t>(512, 7));
    emit_load(largest, half_of(tables_.codes, 0));
  } else {
    emit_load(signs, repeated_constant<uint8_t>(512, 0x80));
    emit_load(limits, repeated_constant<uint8_t>(512, tables_.normal_exponents - 1));
    emit_load(largest, repeated_constant<uint8_t>(512, tables_.largest_code));
  }
}

/// From the bits of the powers less those of the smallest: what an exponent byte of x is counted
/// from, so that the difference is e - 1, or the index of an exponent of narrow codes.
void PowerCoder::emit_bases() {
  const Section check = code_.section(CodeSection::scale_check);
  const int smallest = static_cast<int>(tables_.powers.min >> f32_mantissa_bits);
  const int zero = has_narrow_codes() ? tables_.first_exponent - 1 : 1;
  const int base = 2 * f32_bias - tables_.bias + zero - smallest;
  code_.vpsrld(temporary, temporary, f32_mantissa_bits);
  code_.vmovups(bases, code_.constant(repeated_constant<uint32_t>(512, base)));
  code_.vpsubd(bases, bases, temporary);
}

/// low, high = the bytes of a group's floats; exponents = theirs; temporary = the bases of their
/// blocks.
void PowerCoder::emit_exponents(int group) {
  const Xbyak::Reg64 from = frame_.emit_pointer(floats_);
  const int begin = 2 * group * group_elements;
  code_.vmovups(high, code_.ptr[from + gpr::index * 2 + begin]);
  code_.vmovups(code_bytes, code_.ptr[from + gpr::index * 2 + begin + group_elements]);
  const Zmm& lower_control = apart_ == BytesApart::by_permutation ? order : parting;
  emit_bytes_of_lanes(code_, apart_, BytePart::lower, low, high, code_bytes, lower_control);
  emit_bytes_of_lanes(code_, apart_, BytePart::upper, high, high, code_bytes, parting);
  // The lower byte begins with the exponent's last bit.
  code_.vpmovb2m(chosen, low);
  code_.vpaddb(exponents, high, high);
  code_.vpsubb(exponents | chosen, exponents, all_ones);
  constexpr int i32_bytes = 4;
  code_.vmovups(temporary, code_.constant(vector_constant<uint8_t>(512, [&](int i) {
    return i32_bytes * ((group * group_elements + element_of_byte(apart_, i)) / block_);
  })));
  code_.vpermb(temporary, temporary, bases);
}

/// code_bytes = the codes of a group, without signs.
void PowerCoder::emit_wide_codes(const SharedLabel& exit) {
  Xbyak::Label subnormal;
  Xbyak::Label done;
  code_.vpsubb(code_bytes, exponents, temporary);
  code_.vpcmpub(chosen, code_bytes, limits, greater);
  code_.kortestq(chosen, chosen);
  code_.jnz(subnormal, Xbyak::CodeGenerator::T_NEAR);
  code_.vpermi2b(low, table, more_table);
  code_.vpsllw(code_bytes, code_bytes, tables_.mantissa_bits);
  code_.vpaddb(code_bytes, code_bytes, low);
  code_.vpminub(code_bytes, code_bytes, largest);
  code_.L(done);
  code_.defer([this, subnormal, done, exit]() mutable {
    const Section section = code_.section(CodeSection::subnormal_codes);
    code_.L(subnormal);
    emit_subnormal_codes(*exit);
    code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  });
}

/// The same for a group that has results which are not normal, or too large.
void PowerCoder::emit_subnormal_codes(Xbyak::Label& exit) {
  const int subnormal_exponents = tables_.mantissa_bits + 1;
  const Zmm index = temporary;  // the exponent's: 0 is zero, 1 the first one
  const Zmm classes = exponents;
  code_.vpcmpeqb(chosen, exponents, all_ones);
  code_.kortestq(chosen, chosen);
  code_.jnz(exit, Xbyak::CodeGenerator::T_NEAR);
  code_.vpsubb(index, temporary, bytes(subnormal_exponents + 1));
  code_.vpsubusb(index, exponents, index);
  code_.vmovups(classes, code_.constant(half_of(tables_.classes, 0)));
  code_.vpermt2b(classes, low, code_.constant(half_of(tables_.classes, 1)));
  // Normal ones, as above; those beyond the last exponent come to more than the largest code.
  code_.vpsubusb(code_bytes, index, bytes(subnormal_exponents + 1));
  code_.vpminub(code_bytes, code_bytes, bytes(tables_.normal_exponents));
  code_.vpermi2b(low, table, more_table);
  code_.vpsllw(code_bytes, code_bytes, tables_.mantissa_bits);
  code_.vpaddb(code_bytes, code_bytes, low);
  code_.vpminub(code_bytes, code_bytes, largest);
  // Those below.
  code_.vpaddb(classes, classes, index);
  code_.vpaddb(classes, classes, all_ones);
  code_.vpcmpub(chosen, index, bytes(subnormal_exponents + 1), less);
  code_.vptestmb(others, index, index);
  code_.vmovups(low, code_.constant(half_of(tables_.codes, 0)));
  code_.vpermb(low | others | Xbyak::util::T_z, classes, low);
  code_.vmovdqu8(code_bytes | chosen, low);
}

/// The same for f4e2m1; the largest exponent byte is kept, as that of what is no number.
void PowerCoder::emit_narrow_codes(int group) {
  if (group == 0) {
    code_.vmovdqa64(top, exponents);
  } else {
    code_.vpmaxub(top, top, exponents);
  }
  code_.vpsubusb(code_bytes, exponents, temporary);
  code_.vpminub(code_bytes, code_bytes, limits);
  code_.vpermi2b(low, table, more_table);
  code_.vpaddb(code_bytes, code_bytes, low);
  code_.vpermb(code_bytes, code_bytes, largest);
}

void PowerCoder::emit_store(int group, Stores stores) {
  const Xbyak::Reg64 to = frame_.emit_pointer(sink_);
  const int first = group * group_elements;
  if (has_narrow_codes()) {
    emit_signed_nibbles(code_, code_bytes, high, signs, order, apart_);
    return emit_result(code_.ptr[to + gpr::counter + first / 2], Xbyak::Ymm(code_bytes.getIdx()),
                       stores);
  }
  {
    const Section section = code_.section(CodeSection::encoded_products);
    constexpr uint8_t a_or_b_and_c = 0xf8;
    code_.vpternlogd(code_bytes, high, signs, a_or_b_and_c);
    if (apart_ == BytesApart::by_merges) code_.vpermb(code_bytes, order, code_bytes);
  }
  emit_result(code_.ptr[to + gpr::index + first], code_bytes, stores);
}

void PowerCoder::emit_blocks_loop(Stores stores) {
  const auto exit = std::make_shared<Xbyak::Label>();  // until deferred code has jumped to it
  loops_.emit_main_loop(elements_per_iteration(), [&] {
    emit_leave_if_out_of_range(code_, frame_.emit_pointer(powers_), tables_.powers,
                               ScaleSigns::must_be_positive, temporary, chosen, *exit);
    emit_bases();
    if (has_narrow_codes()) {
      code_.mov(gpr::counter, gpr::index);
      code_.shr(gpr::counter, 1);
    }
    for (int group = 0; group < groups_per_iteration; ++group) {
      {
        const Section section = code_.section(CodeSection::encoded_products);
        emit_exponents(group);
        has_narrow_codes() ? emit_narrow_codes(group) : emit_wide_codes(exit);
      }
      emit_store(group, stores);
    }
    if (has_narrow_codes()) {
      const Section check = code_.section(CodeSection::scale_check);
      code_.vpcmpeqb(chosen, top, all_ones);
      code_.kortestq(chosen, chosen);
      code_.jnz(*exit, Xbyak::CodeGenerator::T_NEAR);
    }
    const Section next = code_.section(CodeSection::next_iteration);
    code_.add(gpr::period, scales_per_iteration);
  });
  code_.L(*exit);
}

}  // namespace castor::jit
