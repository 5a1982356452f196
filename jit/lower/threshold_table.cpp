// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/threshold_table.hpp"

#include <algorithm>

#include "jit/lower/kept_tables.hpp"
#include "jit/lower/small_values.hpp"

namespace castor::jit {

namespace {

/// Converts magnitudes, that is, numbers without their sign and infinity, given by their bits.
class Magnitudes {
 public:
  Magnitudes(ElementType from, ElementType to, const ConvertOptions& options)
      : from_(from), to_(to), options_(options) {}

  int infinity() const { return infinity_bits(from_); }
  int code(int bits) const { return converted_code(bits, from_, to_, options_); }

 private:
  ElementType from_;
  ElementType to_;
  ConvertOptions options_;
};

/// Bits below a bucket's: buckets are as fine as the destination's significand, unless that would
/// leave more low bits than fit a byte.
int bucket_shift(ElementType from, ElementType to) {
  return std::min(7, info(from).format.mantissa_bits - info(to).format.mantissa_bits);
}

/// The least of the numbers from `low` to `high` for which `holds`, which does for `high` and, once
/// it does, for all above.
template <class Holds>
int first_that(int low, int high, Holds holds) {
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (holds(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// The entry of one bucket, whose codes `code` gives by low bits: the first code, and the low bits
/// from which the next one holds. Nothing if the bucket has further codes. Codes ascend.
template <class CodeOf>
std::optional<uint16_t> bucket_entry(CodeOf code, int shift) {
  constexpr int never = 0xff;
  const int last_low = (1 << shift) - 1;
  const int first = code(0);
  const int last = code(last_low);
  if (last != first && last != first + 1) return std::nullopt;
  const int threshold =
      last == first ? never : first_that(0, last_low, [&](int low) { return code(low) != first; });
  return static_cast<uint16_t>(threshold << 8 | first);
}

/// How NaNs get their codes; `top` is the code of the largest magnitudes.
void describe_nans(ThresholdTable& table, ElementType from, ElementType to, int top,
                   const ConvertOptions& options) {
  const int quiet_nan = table.infinity | 1 << (info(from).format.mantissa_bits - 1);
  const int code = converted_code(quiet_nan, from, to, options);
  const int negative = converted_code(quiet_nan | 0x8000, from, to, options);
  table.nan_code = static_cast<uint8_t>(code);
  const bool has_payload = has_infinities(to);
  const bool same_rest =
      negative == (code ^ table.sign_bit) && table.sign == ThresholdTable::copied;
  if (code == top && (same_rest || negative == code)) {
    table.nan = ThresholdTable::as_magnitude;
  } else if (has_payload) {
    table.nan = ThresholdTable::with_sign_and_payload;
  } else {
    table.nan = same_rest ? ThresholdTable::with_sign : ThresholdTable::constant;
  }
}

ThresholdTable::Sign sign_rule(ElementType to) {
  if (to == ElementType::f8e8m0) return ThresholdTable::negative_is_zero;
  return info(to).format.specials == FloatSpecials::fnuz ? ThresholdTable::copied_unless_zero
                                                         : ThresholdTable::copied;
}

std::optional<ThresholdTable> make_threshold_table(ElementType from, ElementType to,
                                                   const ConvertOptions& options) {
  const Magnitudes magnitudes(from, to, options);
  const int infinity = magnitudes.infinity();
  const int shift = bucket_shift(from, to);
  const int bottom = magnitudes.code(0);
  const int top = magnitudes.code(infinity);
  // All magnitudes below the first bucket have one code, and so do all above the last.
  const int first =
      first_that(0, infinity, [&](int bits) { return magnitudes.code(bits) != bottom; });
  const int last = first_that(0, infinity, [&](int bits) { return magnitudes.code(bits) == top; });
  const int base = std::max((first >> shift) - 1, 0) << shift;
  const int max = std::min(((last >> shift) + 1) << shift, infinity);
  const int count = ((max - base) >> shift) + 1;
  if (count > 256) return {};

  ThresholdTable table;
  table.buckets.index_bits = count <= 64 ? 6 : 8;
  table.shift = shift;
  table.base = static_cast<uint16_t>(base);
  table.max = static_cast<uint16_t>(max);
  table.infinity = static_cast<uint16_t>(infinity);
  table.sign = sign_rule(to);
  table.sign_bit = table.sign == ThresholdTable::negative_is_zero
                       ? 0
                       : static_cast<uint8_t>(1 << (bits_of(to) - 1));
  for (int i = 0; i < count; ++i) {
    const int begin = base + (i << shift);
    const auto code = [&](int low) { return magnitudes.code(std::min(begin + low, infinity)); };
    const std::optional<uint16_t> entry = bucket_entry(code, shift);
    if (!entry) return {};
    table.buckets.entries[static_cast<size_t>(i)] = *entry;
  }
  describe_nans(table, from, to, top, options);
  return table;
}

}  // namespace

std::optional<ThresholdTable> threshold_table(ElementType from, ElementType to,
                                              const ConvertOptions& options) {
  // Codes have to ascend with the magnitude, from zero to infinity.
  const bool nans_are_numbers = options.nan != NanMode::by_type;
  if (bits_of(to) > 8 || options.overflow == Overflow::nan) return std::nullopt;
  if (nans_are_numbers && kind_of(to) != ElementKind::floating) return std::nullopt;
  static KeptTables<ThresholdTable> tables;
  return tables.get(from, to, options, make_threshold_table);
}

}  // namespace castor::jit
