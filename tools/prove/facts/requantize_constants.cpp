// SPDX-License-Identifier: Apache-2.0
// What methods make of a slice's parameters, beside the formulas that questions have them by.
#include <fmt/format.h>

#include <cmath>

#include "jit/requantize/embarc_multiplier.hpp"
#include "tools/prove/facts/requantize_spec.hpp"
#include "tools/prove/facts/requantize_symbolic.hpp"

namespace castor::prove {

using jit::RequantizeForm;
using jit::SliceConstants;
using jit::SliceParameters;

namespace {

int32_t low_32(uint64_t bits) { return static_cast<int32_t>(static_cast<uint32_t>(bits)); }

/// The library's multiplier and shift, fractional bits included.
LibraryMultiplier multiplier_of(const RequantizeForm& form, const SliceParameters& s) {
  LibraryMultiplier multiplier =
      library_multiplier(s.from_scale, s.to_scale, form.rounds_half_up());
  multiplier.shift += s.from_frac - s.to_frac;
  return multiplier;
}

bool is_embarc_line(const RequantizeForm& form, const SliceParameters& s,
                    const SliceConstants& constants) {
  const auto multiplier = multiplier_of(form, s);
  const int64_t scale = multiplier.scale;
  const int count = std::min(multiplier.shift, 31);
  const int64_t half = count == 0 ? 0 : int64_t{1} << (count - 1);
  const int64_t addend =
      half - int64_t{s.from_zero_point} * scale + int64_t{s.to_zero_point} * (int64_t{1} << count);
  const int bits = castor::bits_of(form.from_element());
  const int64_t first = -(int64_t{1} << (bits - 1)), last = -first - 1;
  const auto fits = [&](int64_t x) {
    const int64_t sum = x * scale + addend;
    return sum == static_cast<int32_t>(sum) && std::abs(x - s.from_zero_point) <= 32768;
  };
  return low_32(constants[0]) == scale && low_32(constants[1]) == static_cast<int32_t>(addend) &&
         low_32(constants[2]) == count && fits(first) && fits(last) &&
         last - s.from_zero_point < 32768;
}

/// The multiplier with 15 bits.
LibraryMultiplier long_multiplier(const RequantizeForm& form, const SliceParameters& s) {
  LibraryMultiplier multiplier = multiplier_of(form, s);
  for (; multiplier.scale < 1 << 14; multiplier.scale *= 2) ++multiplier.shift;
  return multiplier;
}

bool is_product(const RequantizeForm& form, const SliceParameters& s,
                const SliceConstants& constants) {
  const auto [scale, shift] = long_multiplier(form, s);
  const int count = shift - 16;
  const int64_t sum = (int64_t{1} << (count - 1)) + s.to_zero_point * (int64_t{1} << count);
  return count >= 1 && count <= 31 && low_32(constants[0]) == s.from_zero_point &&
         low_32(constants[1]) == scale && low_32(constants[2]) == scale << 16 &&
         low_32(constants[3]) == sum && low_32(constants[4]) == count;
}

/// The library's product of a difference, as AccumulatorProgram has it.
int64_t accumulated(int64_t d, const LibraryMultiplier& multiplier) {
  const int64_t magnitude = d < 0 ? ~d : d;
  const int norm = 31 - static_cast<int>(std::bit_width(static_cast<uint64_t>(magnitude)));
  const int64_t cut = (int64_t{1} << std::max(16 - norm, 0)) - 1;
  return ((d * multiplier.scale & ~cut) + (int64_t{1} << (multiplier.shift - 1))) >>
         multiplier.shift;
}

/// The bounds are the first and the last element whose result does not saturate.
bool is_accumulator(const RequantizeForm& form, const SliceParameters& s,
                    const SliceConstants& constants) {
  constexpr int64_t min = std::numeric_limits<int32_t>::min();
  constexpr int64_t max = std::numeric_limits<int32_t>::max();
  const LibraryMultiplier multiplier = long_multiplier(form, s);
  const int64_t least = min + std::max<int64_t>(-s.to_zero_point, 0);
  const int64_t end = max + 1 - std::max<int64_t>(s.to_zero_point, 0);
  const auto first_from = [&](int64_t value) {  // by bisection: products grow
    int64_t low = min, high = max + 1;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      (accumulated(middle, multiplier) < value ? low : high) =
          accumulated(middle, multiplier) < value ? middle + 1 : middle;
    }
    return low;
  };
  const auto saturated = [&](int64_t value) { return std::clamp(value, min, max); };
  const auto result = [&](int64_t d) {
    return saturated(saturated(accumulated(d, multiplier)) + s.to_zero_point);
  };
  return low_32(constants[1]) == multiplier.scale && low_32(constants[4]) == multiplier.shift &&
         low_32(constants[7]) == saturated(first_from(least) + s.from_zero_point) &&
         low_32(constants[8]) == saturated(first_from(end) - 1 + s.from_zero_point) &&
         low_32(constants[9]) == result(min) && low_32(constants[10]) == result(max);
}

bool is_cut(const RequantizeForm& form, const SliceParameters& s, const SliceConstants& constants) {
  const auto [scale, shift] = multiplier_of(form, s);
  const int count = std::min(shift, 63);
  const int norm = 31 - static_cast<int>(std::bit_width(static_cast<uint32_t>(scale)));
  return constants[0] == jit::constant_bits(double(s.from_zero_point)) &&
         constants[1] == jit::constant_bits(std::ldexp(scale, -count)) &&
         constants[2] == jit::constant_bits(std::ldexp(1.0, 2 - count - norm)) &&
         constants[3] == jit::constant_bits(double(s.to_zero_point));
}

/// The ratio rounded to f64, and its negative to the method's floats.
bool is_ratio(const RequantizeForm& form, const SliceParameters& s,
              const SliceConstants& constants) {
  double ratio = std::ldexp(s.from_scale / double(s.to_scale), s.to_frac - s.from_frac);
  if (!form.is_exact()) {
    const auto [scale, shift] = multiplier_of(form, s);
    ratio = std::ldexp(scale, -std::min(shift, 63));
  }
  return constants[0] == jit::constant_bits(-ratio) ||
         constants[0] == jit::constant_bits(static_cast<float>(-ratio));
}

bool is_two_parts(const RequantizeForm& form, const SliceParameters& s,
                  const SliceConstants& constants) {
  const int exponent = s.to_frac - s.from_frac;
  if (!form.is_exact() || form.rounds_half_up()) return true;
  const double high = -std::bit_cast<double>(constants[1]);
  const double low = std::bit_cast<double>(constants[3]);
  // The parts times the divisor are the scale, but for what two roundings of the lower one lose.
  const double scale = std::ldexp(double(s.from_scale), exponent);
  const double remainder = std::fma(high, s.to_scale, -scale) + low * s.to_scale;
  return std::abs(remainder) <= std::ldexp(scale, -100);
}

/// The library's multiplier of all pairs of scales, or some.
void check_multipliers(const FactEffort& effort, FactCheck& check) {
  constexpr int32_t end = 32768;
  const int step = step_of(effort, 331);
  for (const bool half_up : {true, false}) {
    bool all = true;
    for (int32_t from = 1; from < end; from += step) {
      for (int32_t to = 1; to < end; ++to) {
        const jit::EmbarcMultiplier found =
            jit::embarc_multiplier({.from_scale = from, .to_scale = to}, half_up);
        const LibraryMultiplier named = library_multiplier(from, to, half_up);
        all = all && found.scale == named.scale && found.shift == named.shift;
      }
    }
    check.holds(all, half_up ? "multipliers, half_up" : "multipliers, nearest_even");
  }
}

using IsAsNamed = bool (*)(const RequantizeForm&, const SliceParameters&, const SliceConstants&);

struct Row {
  const jit::RequantizeMethod& method;
  bool of_exact;
  bool of_embarc;
  IsAsNamed is_as_named;
};

}  // namespace

FactVerdict check_constants(const FactEffort& effort, const RequantizeTamper& tamper) {
  const Row rows[] = {{jit::linear_method(), false, true, is_embarc_line},
                      {jit::saturating_i32_product_method(), false, true, is_product},
                      {jit::i32_product_method(), false, true, is_product},
                      {jit::i32_accumulator_method(), false, true, is_accumulator},
                      {jit::cut_accumulator_method(), false, true, is_cut},
                      {jit::rounded_float_method(), true, true, is_ratio},
                      {jit::split_rounded_float_method(), true, true, is_ratio},
                      {jit::rounded_double_method(), true, true, is_ratio},
                      {jit::double_method(), true, false, is_two_parts}};
  FactCheck check(effort);
  check_multipliers(effort, check);
  for (const Row& row : rows) {
    for (const RequantizeForm& form : forms_of(row.method)) {
      if (!(form.is_exact() ? row.of_exact : row.of_embarc)) continue;
      SliceSource source(row.method, form, effort.seed);
      for (int i = 0; i < 100 * effort.samples && check.goes_on(); ++i) {
        const std::optional<SliceParameters> slice = source.next();
        if (!slice) break;
        SliceConstants constants = *source.prepared(*slice);
        if (tamper.constants) tamper.constants(constants);
        check.holds(row.is_as_named(form, *slice, constants),
                    fmt::format("{}, {}", row.method.name(), text_of(form, *slice)));
      }
    }
  }
  return check.verdict("slices", Status::exhausted);
}

}  // namespace castor::prove
