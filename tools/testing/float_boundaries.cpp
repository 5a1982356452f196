// SPDX-License-Identifier: Apache-2.0
#include "tools/testing/float_boundaries.hpp"

#include <algorithm>
#include <bit>

namespace castor::samples {

namespace {

int lowest_exponent(const FloatFormat& format) {
  return 1 - format.bias;  // the least exponent of normal numbers
}

int highest_exponent(const FloatFormat& format) {
  return (1 << format.exponent_bits) - 2 - format.bias;
}

/// Collects magnitudes of one format; `take` adds their negations.
class Collector {
 public:
  explicit Collector(ElementType type) : row_(info(type)), format_(row_.format) {}

  /// Adds significand * 2^exponent, cut off to the format, and both neighbours.
  void add_value(uint64_t significand, int exponent) {
    const uint64_t pattern = truncated(significand, exponent);
    if (pattern > 0) patterns_.push_back(pattern - 1);
    patterns_.push_back(pattern);
    patterns_.push_back(pattern + 1);  // the largest number's neighbour is infinity
  }

  void add_infinity_and_nans() {
    const uint64_t infinity = infinity_pattern();
    const uint64_t all_ones = (uint64_t{1} << format_.mantissa_bits) - 1;
    const uint64_t alternating = 0x5555555555555555 & all_ones;
    for (uint64_t payload : {uint64_t{0}, all_ones, all_ones >> 1, alternating, alternating >> 1}) {
      patterns_.push_back(infinity | payload);
    }
    for (int bit = 0; bit < format_.mantissa_bits; ++bit) {
      const uint64_t quiet_bit = uint64_t{1} << (format_.mantissa_bits - 1);
      patterns_.push_back(infinity | uint64_t{1} << bit);
      patterns_.push_back(infinity | uint64_t{1} << bit | quiet_bit);
    }
  }

  std::vector<uint64_t> take() {
    const uint64_t sign = uint64_t{1} << (row_.bits - 1);
    std::vector<uint64_t> all = patterns_;
    for (uint64_t magnitude : patterns_) all.push_back(magnitude | sign);
    return all;
  }

  const FloatFormat& format() const { return format_; }

 private:
  uint64_t infinity_pattern() const {
    return ((uint64_t{1} << format_.exponent_bits) - 1) << format_.mantissa_bits;
  }

  /// The largest pattern of the format whose value is at most significand * 2^exponent.
  uint64_t truncated(uint64_t significand, int exponent) const {
    const int top = std::bit_width(significand) - 1 + exponent;
    if (significand == 0) return 0;
    if (top > highest_exponent(format_)) return infinity_pattern() - 1;
    const int last_place = std::max(top, lowest_exponent(format_)) - format_.mantissa_bits;
    const int shift = exponent - last_place;
    if (shift <= -64) return 0;
    const uint64_t digits = shift >= 0 ? significand << shift : significand >> -shift;
    const uint64_t field = static_cast<uint64_t>(std::max(top, lowest_exponent(format_)) +
                                                 format_.bias);  // 1 for subnormals too:
    return ((field - 1) << format_.mantissa_bits) +
           digits;  // a normal number's leading digit adds 1 to it
  }

  const ElementInfo& row_;
  const FloatFormat& format_;
  std::vector<uint64_t> patterns_;
};

/// Powers of two: all of them, or, for f64, those near the other types' ranges and its own ends.
void add_powers(Collector& out) {
  const int last = highest_exponent(out.format());
  const int first = lowest_exponent(out.format()) - out.format().mantissa_bits;
  for (int exponent = first; exponent <= last + 1; ++exponent) {
    const bool near_other_types = exponent >= -160 && exponent <= 132;
    const bool near_own_ends = exponent <= first + 3 || exponent >= last - 3 ||
                               std::abs(exponent - lowest_exponent(out.format())) <= 2;
    if (near_other_types || near_own_ends) out.add_value(1, exponent);
  }
}

/// The integers and halves of 8-bit types, and powers of two -+ 1/2, 1 and 3/2: where rounding to
/// integers and their limits decide.
void add_integers_and_halves(Collector& out) {
  for (uint64_t twice = 0; twice <= 514; ++twice) out.add_value(twice, -1);
  for (int exponent = 2; exponent <= 62; ++exponent) {
    for (uint64_t twice = 1; twice <= 3; ++twice) {
      out.add_value((uint64_t{2} << exponent) - twice, -1);
      out.add_value((uint64_t{2} << exponent) + twice, -1);
    }
  }
}

/// The points halfway between neighbours of a narrower format: with the even neighbour below,
/// above, and at the next power of two; every one of them for formats of up to 3 mantissa bits.
/// Also the largest number below that power, which ends the range at the last exponent.
void add_midpoints(Collector& out, const FloatFormat& narrow, int exponent) {
  const uint64_t one = uint64_t{2} << narrow.mantissa_bits;  // 1.0, followed by one more digit
  const int last_digit = exponent - narrow.mantissa_bits - 1;
  for (uint64_t digits : {uint64_t{1}, uint64_t{3}, one - 2, one - 1}) {
    out.add_value(one + digits, last_digit);
  }
  if (narrow.mantissa_bits > 3) return;
  for (uint64_t odd = 5; odd < one; odd += 2) out.add_value(one + odd, last_digit);
}

/// The midpoints of f8e8m0: between all the powers of two of `add_powers`.
void add_power_midpoints(Collector& out) {
  for (int exponent = -130; exponent <= 128; ++exponent) out.add_value(3, exponent - 1);
}

/// nf4 turns at 15 numbers of f32 (OpenVINO, element type nf4), here as multiples of 2^-40.
void add_nf4_thresholds(Collector& out) {
  for (float threshold :
       {0.8480964004993439f, 0.6106329262256622f, 0.4599952697753906f, 0.33967943489551544f,
        0.23460740596055984f, 0.13791173323988914f, 0.045525018125772476f, 0.03979014977812767f,
        0.1202552504837513f, 0.2035212516784668f, 0.2920137718319893f, 0.3893125355243683f,
        0.5016634166240692f, 0.6427869200706482f, 0.8614784181118011f}) {
    out.add_value(static_cast<uint64_t>(threshold * 0x1p40f), -40);
  }
}

/// Every one of them for formats of up to 3 mantissa bits.
void add_subnormal_midpoints(Collector& out, const FloatFormat& narrow) {
  const int half_ulp = lowest_exponent(narrow) - narrow.mantissa_bits - 1;
  const uint64_t smallest_normal = uint64_t{2} << narrow.mantissa_bits;  // in half ulps
  for (uint64_t odd = 1; odd <= 15; odd += 2) out.add_value(odd, half_ulp);
  out.add_value(smallest_normal - 1, half_ulp);
}

/// At every exponent of the formats of up to 16 bits.
void add_midpoints(Collector& out, const FloatFormat& narrow) {
  const int first = lowest_exponent(narrow);
  const int last = highest_exponent(narrow) + 1;  // formats without infinities use one more
  for (int exponent = first; exponent <= last; ++exponent) {
    const bool at_ends = exponent <= first + 1 || exponent >= last - 3;
    const bool near_one = std::abs(exponent) <= 2;
    if (narrow.mantissa_bits <= 10 || at_ends || near_one || exponent % 16 == 0) {
      add_midpoints(out, narrow, exponent);
    }
  }
  add_subnormal_midpoints(out, narrow);
}

}  // namespace

std::vector<uint64_t> float_boundaries(ElementType type) {
  Collector out(type);
  add_powers(out);
  add_integers_and_halves(out);
  for (const ElementInfo& row : element_table) {
    const bool narrower = row.format.mantissa_bits < out.format().mantissa_bits;
    if (row.kind == ElementKind::floating && narrower) add_midpoints(out, row.format);
  }
  add_power_midpoints(out);
  add_nf4_thresholds(out);
  out.add_infinity_and_nans();
  return out.take();
}

}  // namespace castor::samples
