// SPDX-License-Identifier: Apache-2.0
// Small floats as words of bf16 whose significands are left to products: what emitters look up that
// scale codes (scaled_codes.hpp, scaled_nibbles.hpp).
//
// A product with a power of two is rounded as it is without that power, while all results are
// normal numbers. So the products of a scale with all codes are known from those with the few
// significands that the format has: a code's sign and exponent are added to the bf16 of the product
// of its class, which are the codes of one significand, zero, and what is no number.
#pragma once

#include <array>
#include <vector>

#include "jit/emit/block_emitter.hpp"
#include "jit/plan/nest_form.hpp"

namespace castor::jit {

/// Codes that have one significand, or are zero, or one NaN or infinity.
struct CodeClass {
  uint32_t significand;  ///< what stands for them, as f32
  bool is_number;        ///< and not zero
};

struct CodeWords {
  explicit CodeWords(ElementType type);

  std::vector<CodeClass> classes;          ///< zero first
  std::array<uint8_t, 256> class_of = {};  ///< by code
  std::array<uint16_t, 256> words = {};    ///< by code: sign << 15, plus exponent << 7
  ScaleRange scales;                       ///< all results of these are normal numbers, or zero

  const CodeClass& of(size_t code) const { return classes[class_of[code]]; }
};

/// Whether a nest multiplies codes by scales and its codes and results are contiguous, for a target
/// with VBMI.
bool scales_contiguous_codes(const Nest& nest, const NestForm& form, const Target& target);

/// Whether negative codes are positive ones with another sign.
bool has_plain_signs(ElementType type);

namespace small_float {
inline constexpr int bf16_mantissa_bits = 7;
inline constexpr int f32_mantissa_bits = 23;
inline constexpr int bias = 127;
inline constexpr uint16_t bf16_sign = 0x8000;
inline constexpr uint16_t bf16_infinity = 0x7f80;
}  // namespace small_float

}  // namespace castor::jit
