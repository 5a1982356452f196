// SPDX-License-Identifier: Apache-2.0
// Decimal literals as exact numbers: a ratio of two big integers, divided bit by bit.
#include "ir/text/decimal.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>

namespace castor::text {

namespace {

using numerics::NumberClass;
using numerics::Unpacked;

/// Digits kept. A number of 64 bits at or above 2^-1163 (64 bits below 2^-1100) has at most
/// 20 + 813 significant decimal digits, so a longer text never crosses one after these digits.
constexpr size_t kept_digits = 840;
/// Decimal exponents of the leading digit outside which nothing is computed.
constexpr int64_t largest_exponent = 310;
constexpr int64_t smallest_exponent = -330;

/// A natural number of bounded size. The largest is the aligned ratio below: 10^1171 or 840 digits,
/// moved to the other's width, 3900 bits.
class Natural {
 public:
  explicit Natural(uint32_t value) : size_(value != 0) { limbs_[0] = value; }

  void multiply_add(uint32_t factor, uint32_t addend) {
    uint64_t carry = addend;
    for (size_t i = 0; i < size_; ++i) {
      carry += uint64_t{limbs_[i]} * factor;
      limbs_[i] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) limbs_[size_++] = static_cast<uint32_t>(carry);
  }

  void multiply_power_of_ten(int64_t exponent) {
    for (; exponent >= 9; exponent -= 9) multiply_add(1'000'000'000, 0);
    for (; exponent > 0; --exponent) multiply_add(10, 0);
  }

  void shift_left(int bits) {
    const size_t whole = static_cast<size_t>(bits) / 32;
    std::move_backward(limbs_.begin(), limbs_.begin() + size_, limbs_.begin() + size_ + whole);
    std::fill_n(limbs_.begin(), whole, 0);
    size_ += whole;
    if (bits % 32 != 0) multiply_add(uint32_t{1} << (bits % 32), 0);
  }

  /// Only for other <= *this.
  void subtract(const Natural& other) {
    int64_t borrow = 0;
    for (size_t i = 0; i < size_; ++i) {
      borrow += int64_t{limbs_[i]} - (i < other.size_ ? other.limbs_[i] : 0);
      limbs_[i] = static_cast<uint32_t>(borrow);
      borrow >>= 32;
    }
    while (size_ > 0 && limbs_[size_ - 1] == 0) --size_;
  }

  bool less_than(const Natural& other) const {
    if (size_ != other.size_) return size_ < other.size_;
    for (size_t i = size_; i-- > 0;) {
      if (limbs_[i] != other.limbs_[i]) return limbs_[i] < other.limbs_[i];
    }
    return false;
  }

  bool is_zero() const { return size_ == 0; }
  int bit_width() const {
    return size_ == 0 ? 0 : static_cast<int>(size_ * 32) - std::countl_zero(limbs_[size_ - 1]);
  }

 private:
  std::array<uint32_t, 128> limbs_;  // little endian; only the first size_ are ever read
  size_t size_;
};

/// 0.d1 d2 d3 ... * 10^(exponent + 1), that is d1 . d2 d3 ... * 10^exponent.
struct Digits {
  std::string digits;    ///< without leading zeros, at most kept_digits; empty for zero
  int64_t exponent = 0;  ///< the first digit's
  bool more = false;     ///< a nonzero digit follows those kept
};

int64_t exponent_part(std::string_view text) {
  const bool negative = text.starts_with('-');
  int64_t value = 0;
  for (char c : text.substr(negative || text.starts_with('+') ? 1 : 0)) {
    value = std::min<int64_t>(value * 10 + (c - '0'), int64_t{1} << 40);
  }
  return negative ? -value : value;
}

Digits scan(std::string_view text) {
  const size_t mark = std::min(text.find_first_of("eE"), text.size());
  Digits number;
  int64_t integer_digits = 0;  // digits before the point, counted from the first nonzero one
  bool after_point = false;
  for (char c : text.substr(0, mark)) {
    if (c == '.') {
      after_point = true;
    } else if (c == '0' && number.digits.empty()) {
      integer_digits -= after_point;
    } else {
      integer_digits += !after_point;
      if (number.digits.size() < kept_digits) {
        number.digits += c;
      } else {
        number.more |= c != '0';
      }
    }
  }
  number.exponent =
      integer_digits - 1 + (mark < text.size() ? exponent_part(text.substr(mark + 1)) : 0);
  return number;
}

Natural natural(std::string_view digits) {
  Natural value(0);
  size_t i = 0;
  for (; i + 9 <= digits.size(); i += 9) {
    uint32_t chunk = 0;
    for (char c : digits.substr(i, 9)) chunk = chunk * 10 + static_cast<uint32_t>(c - '0');
    value.multiply_add(1'000'000'000, chunk);
  }
  for (; i < digits.size(); ++i) value.multiply_add(10, static_cast<uint32_t>(digits[i] - '0'));
  return value;
}

/// 64 bits of numerator / denominator, both nonzero.
Unpacked divide(Natural numerator, Natural denominator) {
  // 1. Align both to one width, so that the ratio left is between 1/2 and 2, then above 1.
  int exponent = numerator.bit_width() - denominator.bit_width();
  if (exponent < 0) numerator.shift_left(-exponent);
  if (exponent > 0) denominator.shift_left(exponent);
  if (numerator.less_than(denominator)) {
    numerator.shift_left(1);
    --exponent;
  }
  // 2. Long division, a bit at a time from bit 63, the first of which is 1.
  Unpacked result = {.kind = NumberClass::finite, .exponent = exponent};
  for (int bit = 63; bit >= 0 && !numerator.is_zero(); --bit) {
    if (!numerator.less_than(denominator)) {
      result.significand |= uint64_t{1} << bit;
      numerator.subtract(denominator);
    }
    numerator.shift_left(1);
  }
  result.inexact = !numerator.is_zero();
  return result;
}

Unpacked magnitude(const Digits& number) {
  if (number.digits.empty()) return {};
  if (number.exponent > largest_exponent || number.exponent < smallest_exponent) {
    return {.kind = NumberClass::finite,
            .significand = uint64_t{1} << 63,
            .exponent = number.exponent > 0 ? 1100 : -1100,
            .inexact = true};
  }
  Natural numerator = natural(number.digits);
  Natural denominator(1);
  const int64_t scale = number.exponent - static_cast<int64_t>(number.digits.size()) + 1;
  (scale < 0 ? denominator : numerator).multiply_power_of_ten(scale < 0 ? -scale : scale);
  Unpacked result = divide(numerator, denominator);
  result.inexact |= number.more;
  return result;
}

}  // namespace

Unpacked exact_decimal(std::string_view text) {
  const bool negative = text.starts_with('-');
  Unpacked result = magnitude(scan(text.substr(negative ? 1 : 0)));
  result.negative = negative;
  return result;
}

}  // namespace castor::text
