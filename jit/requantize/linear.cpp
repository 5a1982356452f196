// SPDX-License-Identifier: Apache-2.0
// (x * multiplier + addend) >> shift.
//
// The library's arithmetic is of that form where it shifts to the right and rounds half up. So is
// the exact one where the ratio is a whole number over a power of two. For other ratios there is
// nearly always a multiplier that gives the same integers for all 256 values of a source of 8 bits:
// the line with the slope of the ratio passes between the same lattice points as its neighbours.
// Which one does is tried out.
#include "jit/requantize/embarc_multiplier.hpp"
#include "jit/requantize/methods.hpp"

namespace castor::jit {

namespace {

constexpr ElementType constant_types[] = {ElementType::i32, ElementType::i32, ElementType::i32};

struct Line {
  int64_t multiplier;
  int64_t addend;  ///< of x itself: the zero point of the source is in it
  int shift;

  int64_t at(int64_t x) const { return (x * multiplier + addend) >> shift; }
};

struct Range {
  int64_t min;
  int64_t max;
};
Range range_of(ElementType container) {
  return {integer_min(container), static_cast<int64_t>(integer_max(container))};
}

/// Whether no product or sum of an element exceeds 32 bits. Sums grow or fall with x, so the ends
/// of its range decide.
bool fits(const Line& line, const Range& x) {
  const auto is_int32 = [](int64_t value) { return value == static_cast<int32_t>(value); };
  return is_int32(line.multiplier) && line.shift < 32 &&
         is_int32(x.min * line.multiplier + line.addend) &&
         is_int32(x.max * line.multiplier + line.addend);
}

SliceConstants constants_of(const Line& line) {
  // The addend may be any number modulo 2^32: the sum is within 32 bits.
  return {constant_bits(static_cast<int32_t>(line.multiplier)), static_cast<uint32_t>(line.addend),
          constant_bits(static_cast<int32_t>(line.shift))};
}

std::optional<Line> embarc_line(const RequantizeForm& form, const SliceParameters& slice) {
  const auto [scale, shift] = embarc_multiplier(slice, form.rounds_half_up());
  const int count = std::min(shift, 31);
  if (count < 0 || (!form.rounds_half_up() && count > 0)) return std::nullopt;
  const Range x = range_of(form.from_element());
  const Range difference = range_of(ElementType::i16);  // which the library saturates to
  if (x.min - slice.from_zero_point < difference.min ||
      x.max - slice.from_zero_point > difference.max) {
    return std::nullopt;
  }
  const int64_t half = count == 0 ? 0 : int64_t{1} << (count - 1);
  return Line{scale,
              half - int64_t{slice.from_zero_point} * scale +
                  int64_t{slice.to_zero_point} * (int64_t{1} << count),
              count};
}

/// A line of that slope through the destination's zero point at the source's, rounded half up.
Line line_through_zero_points(const SliceParameters& slice, int64_t multiplier, int shift,
                              int64_t more = 0) {
  const int64_t half = shift == 0 ? 0 : int64_t{1} << (shift - 1);
  return {multiplier,
          half + more - slice.from_zero_point * multiplier +
              int64_t{slice.to_zero_point} * (int64_t{1} << shift),
          shift};
}

/// Where the scale that is divided by is a power of two.
std::optional<Line> dyadic_line(const SliceParameters& slice) {
  if (!std::has_single_bit(static_cast<uint32_t>(slice.to_scale))) return std::nullopt;
  const int exponent =
      slice.to_frac - slice.from_frac - std::countr_zero(static_cast<uint32_t>(slice.to_scale));
  if (exponent >= 0) {
    if (exponent > 15) return std::nullopt;
    return line_through_zero_points(slice, int64_t{slice.from_scale} << exponent, 0);
  }
  if (exponent < -31) return std::nullopt;
  return line_through_zero_points(slice, slice.from_scale, -exponent);
}

/// The specification's formula for whole numbers, saturated.
int64_t exact_value(const SliceParameters& slice, int64_t x, const Range& results) {
  const int exponent = slice.to_frac - slice.from_frac;
  const int64_t top =
      (x - slice.from_zero_point) * slice.from_scale * (int64_t{1} << std::max(exponent, 0));
  const int64_t bottom = int64_t{slice.to_scale} * (int64_t{1} << std::max(-exponent, 0));
  const int64_t doubled = 2 * top + bottom;  // floor((2 top + bottom) / (2 bottom))
  const int64_t quotient = doubled / (2 * bottom) - (doubled % (2 * bottom) < 0 ? 1 : 0);
  return std::clamp(quotient + slice.to_zero_point, results.min, results.max);
}

bool is_exact(const Line& line, const SliceParameters& slice, const Range& x,
              const Range& results) {
  for (int64_t value = x.min; value <= x.max; ++value) {
    const int64_t found = std::clamp(line.at(value), results.min, results.max);
    if (found != exact_value(slice, value, results)) return false;
  }
  return true;
}

/// A line that gives the exact results, found by trial.
std::optional<Line> tried_line(const RequantizeForm& form, const SliceParameters& slice) {
  const int exponent = slice.to_frac - slice.from_frac;
  if (exponent < -28 || exponent > 28) return std::nullopt;
  const Range x = range_of(form.from_element());
  const Range results = range_of(form.to_element());
  for (int shift = 30; shift >= 8; --shift) {
    // floor(from_scale * 2^(exponent + shift) / to_scale)
    const int up = exponent + shift;
    if (up < 0) return std::nullopt;
    if (up > 47) continue;  // 64 bits
    const int64_t below = (int64_t{slice.from_scale} << up) / slice.to_scale;
    if (below >= std::numeric_limits<int32_t>::max()) continue;
    if (!fits(line_through_zero_points(slice, below + 1, shift), x)) continue;
    // Ties of both signs want a little more than a half.
    const int64_t more = (int64_t{1} << shift) >> 10;
    for (const Line& line : {line_through_zero_points(slice, below, shift),
                             line_through_zero_points(slice, below + 1, shift),
                             line_through_zero_points(slice, below, shift, more),
                             line_through_zero_points(slice, below + 1, shift, more)}) {
      if (fits(line, x) && is_exact(line, slice, x, results)) return line;
    }
    return std::nullopt;  // less precise ones are no better
  }
  return std::nullopt;
}

class Linear final : public RequantizeMethod {
 public:
  std::string_view name() const override { return "linear"; }

  bool takes(const RequantizeForm& form) const override {
    return form.from && form.to && !form.has_32_bits();
  }

  std::span<const ElementType> constants(const RequantizeForm&) const override {
    return constant_types;
  }

  std::optional<SliceConstants> prepare(const RequantizeForm& form, const SliceParameters& slice,
                                        Effort effort) const override {
    std::optional<Line> line = form.is_exact() ? dyadic_line(slice) : embarc_line(form, slice);
    if (form.is_exact() && !form.rounds_half_up() && line && line->shift > 0) line.reset();
    const bool may_try = form.is_exact() && form.rounds_half_up() && effort == Effort::thorough &&
                         form.from_element() == ElementType::i8;
    if (!line && may_try) line = tried_line(form, slice);
    if (!line || !fits(*line, range_of(form.from_element()))) return std::nullopt;
    return constants_of(*line);
  }

  void lower(const RequantizeForm& form, const RequantizeLanes& lanes) const override {
    LaneBuilder& b = lanes.builder;
    const LaneId x = lanes.integers();
    const LaneId multiplier = lanes.constant(0);
    const LaneId addend = lanes.constant(1);
    // The library's multipliers are i16 that are not negative.
    const LaneId sum = form.is_exact() ? b.add(b.mul(x, multiplier), addend)
                                       : b.add_dot_i16_pairs(addend, x, multiplier);
    lanes.store(b.shift_right_signed_by(sum, lanes.constant(2)), Narrowing::saturate_to_signed);
  }
};

}  // namespace

const RequantizeMethod& linear_method() {
  static constinit const Linear method;
  return method;
}

}  // namespace castor::jit
