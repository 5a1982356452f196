// SPDX-License-Identifier: Apache-2.0
#include "bench/special_data.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "ir/numerics/scalar.hpp"
#include "tools/testing/samples.hpp"

namespace castor::bench {

namespace {

constexpr uint64_t seed = 20240607;

bool has_exponent(ElementType type) {
  return is_float(type) || kind_of(type) == ElementKind::power_of_two;
}

int smallest_normal_exponent(ElementType type) {
  const FloatFormat& format = info(type).format;
  return (kind_of(type) == ElementKind::power_of_two ? 0 : 1) - format.bias;
}

/// Whether a conversion of the pair may meet that kind at all.
bool occurs(Special special, const TypePair& pair) {
  const FloatFormat& format = info(pair.from).format;
  const bool is_power = kind_of(pair.from) == ElementKind::power_of_two;
  if (!has_exponent(pair.from)) return false;
  switch (special) {
    case Special::nan: return is_power || format.specials != FloatSpecials::finite;
    case Special::infinity: return format.specials == FloatSpecials::ieee;
    case Special::subnormal_result:
      return is_float(pair.to) &&
             smallest_normal_exponent(pair.from) < smallest_normal_exponent(pair.to);
    case Special::subnormal:
    case Special::mixed: break;
  }
  return true;
}

/// Fields of one pattern, drawn at random.
class Pattern {
 public:
  Pattern(ElementType type, uint64_t random)
      : format_(info(type).format),
        is_power_(kind_of(type) == ElementKind::power_of_two),
        sign_(is_power_ ? 0 : (random >> 63) << (bits_of(type) - 1)),
        mantissa_(random & mantissa_mask()) {}

  uint64_t nan() const {
    if (format_.specials == FloatSpecials::fnuz) return uint64_t{1} << sign_shift();
    if (is_power_) return exponent_mask();
    const bool all_ones = format_.specials == FloatSpecials::nan_only;
    return infinity() | (all_ones ? mantissa_mask() : std::max<uint64_t>(mantissa_, 1));
  }
  uint64_t infinity() const { return sign_ | exponent_mask() << format_.mantissa_bits; }
  uint64_t subnormal() const { return is_power_ ? 0 : sign_ | std::max<uint64_t>(mantissa_, 1); }
  uint64_t zero() const { return format_.specials == FloatSpecials::fnuz ? 0 : sign_; }
  /// A number with the last exponent but one: finite in every format.
  uint64_t large() const {
    return sign_ | (exponent_mask() - 1) << format_.mantissa_bits | mantissa_;
  }

 private:
  uint64_t mantissa_mask() const { return (uint64_t{1} << format_.mantissa_bits) - 1; }
  uint64_t exponent_mask() const { return (uint64_t{1} << format_.exponent_bits) - 1; }
  int sign_shift() const { return format_.mantissa_bits + format_.exponent_bits; }

  const FloatFormat& format_;
  bool is_power_;
  uint64_t sign_;
  uint64_t mantissa_;
};

/// A value below the smallest normal one of the destination, not far below what either has.
uint64_t subnormal_result(const TypePair& pair, uint64_t random) {
  const int normal = smallest_normal_exponent(pair.to);
  const int of_source = smallest_normal_exponent(pair.from) - info(pair.from).format.mantissa_bits;
  const int deepest = std::min(info(pair.to).format.mantissa_bits, normal - of_source);
  const int below = 1 + static_cast<int>((random >> 32) % static_cast<uint64_t>(deepest));
  const double magnitude = 1 + static_cast<double>(random & 0xFFFFFF) * 0x1p-24;
  const double value = std::ldexp(magnitude, normal - below);
  const bool negative = random >> 63 && kind_of(pair.from) != ElementKind::power_of_two;
  return numerics::convert(std::bit_cast<uint64_t>(negative ? -value : value), ElementType::f64,
                           pair.from, {});
}

uint64_t special_pattern(Special special, const TypePair& pair, std::mt19937_64& random) {
  const Pattern pattern(pair.from, random());
  switch (special) {
    case Special::nan: return pattern.nan();
    case Special::infinity: return pattern.infinity();
    case Special::subnormal: return pattern.subnormal();
    case Special::subnormal_result: return subnormal_result(pair, random());
    case Special::mixed: break;
  }
  constexpr std::array kinds = {Special::nan, Special::infinity, Special::subnormal};
  const uint64_t draw = random() % 5;
  if (draw < kinds.size() && occurs(kinds[draw], pair)) {
    return special_pattern(kinds[draw], pair, random);
  }
  return draw % 2 == 0 ? pattern.zero() : pattern.large();
}

}  // namespace

std::string_view name_of(Special special) {
  switch (special) {
    case Special::nan: return "nan";
    case Special::infinity: return "infinity";
    case Special::subnormal: return "subnormal";
    case Special::subnormal_result: return "subnormal_result";
    case Special::mixed: break;
  }
  return "mixed";
}

std::optional<std::vector<std::byte>> special_tile(Special special, const TypePair& pair,
                                                   size_t count) {
  if (!occurs(special, pair)) return std::nullopt;
  std::mt19937_64 random(seed);
  std::vector<uint64_t> patterns(count);
  for (uint64_t& pattern : patterns) pattern = special_pattern(special, pair, random);
  return samples::pack(pair.from, patterns);
}

}  // namespace castor::bench
