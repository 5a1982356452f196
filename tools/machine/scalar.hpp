// SPDX-License-Identifier: Apache-2.0
// What a general register holds: a number that addresses and counts are made of, or data.
#pragma once

#include <array>
#include <optional>

#include "tools/machine/memory.hpp"

namespace castor::machine {

/// Flags that conditions read; without a value where they depend on data, or on the index.
struct Flags {
  std::optional<bool> zero;
  std::optional<bool> sign;
  std::optional<bool> carry;
  std::optional<bool> overflow;
};

/// 8 to 64 bits: data where `data` is there, else a number.
template <class D>
struct Scalar {
  using Bits = typename D::Bits;

  int width = 64;
  Word word;
  std::optional<Bits> data;

  static Scalar number(int width, uint64_t value) {
    return {.width = width, .word = {value & low_bits(width), 0}, .data = std::nullopt};
  }
  /// Data of known value is a number.
  static Scalar of(Bits bits) {
    const int width = D::width(bits);
    if (const auto value = D::value_of(bits)) return number(width, *value);
    return {.width = width, .word = {}, .data = bits};
  }

  bool is_number() const { return !data; }
  bool is_constant() const { return !data && word.slope == 0; }
  /// As bits of the domain; of what grows with the index, those that it has now.
  Bits bits(D& domain) const { return data ? *data : domain.constant(width, word.value); }
  /// Data of 8 to 64 bits of which nothing is known.
  static Scalar unknown(D& domain, int width) {
    std::array<typename D::Byte, 8> bytes;
    for (auto& byte : bytes) byte = unknown_byte(domain);
    return of(domain.join(bytes.data(), width / 8));
  }
};

/// Arithmetic of numbers that grow with the index, which stay linear in it; nothing where they do
/// not. Addresses and counts are far from 2^63, so that nothing wraps.
inline std::optional<Word> product(Word a, Word b) {
  if (a.slope != 0 && b.slope != 0) return std::nullopt;
  return Word{a.value * b.value,
              a.slope * static_cast<int64_t>(b.value) + b.slope * static_cast<int64_t>(a.value)};
}
/// Only where the index adds whole units: what is cut off is then the same for all.
inline std::optional<Word> shifted_right(Word a, int by) {
  const auto unit = int64_t{1} << by;
  if (a.slope % unit != 0) return std::nullopt;
  return Word{a.value >> by, a.slope / unit};
}

}  // namespace castor::machine
