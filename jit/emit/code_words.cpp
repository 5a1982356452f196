// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/code_words.hpp"

#include <algorithm>

#include "ir/types/element_type.hpp"
#include "jit/lower/small_values.hpp"

namespace castor::jit {

using namespace small_float;

bool scales_contiguous_codes(const Nest& nest, const NestForm& form, const Target& target) {
  const ScaledCodes& scaled = nest.program.scaled_codes;
  return scaled.exist() && target.supports(Feature::avx512_vbmi) &&
         form.access[static_cast<size_t>(scaled.codes)] == Access::contiguous &&
         form.access.back() == Access::contiguous;
}

bool has_plain_signs(ElementType type) {
  const ByteTable converted = *conversion_table(type, ElementType::bf16, {});
  const size_t half = size_t{1} << (bits_of(type) - 1);
  for (size_t code = 0; code < half; ++code) {
    if ((converted.entries[code] ^ bf16_sign) != converted.entries[code + half]) return false;
  }
  return true;
}

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
    const auto index = same - classes.begin();
    if (same == classes.end()) classes.push_back(own);
    if (is_number) {
      least = std::min(least, exponent);
      greatest = std::max(greatest, exponent);
    }
    class_of[i] = static_cast<uint8_t>(index);
    words[i] = static_cast<uint16_t>((number & bf16_sign) + exponent * (1 << bf16_mantissa_bits));
  }
  // Products of the scale's exponent plus `least` are normal, those of `greatest` have room for a
  // significand below 2 times another, rounded up; so have the table's own, whose exponent is 0.
  const int first = std::max(1 - bias, 1 - bias - least);
  const int last = std::min(bias - 2, bias - 2 - greatest);
  scales.min = static_cast<uint32_t>(first + bias) << f32_mantissa_bits;
  scales.limit = static_cast<uint32_t>(last + bias + 1) << f32_mantissa_bits;
}

}  // namespace castor::jit
