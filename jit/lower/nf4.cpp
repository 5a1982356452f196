// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/nf4.hpp"

#include <bit>
#include <cmath>
#include <tuple>

#include "jit/lower/small_values.hpp"

namespace castor::jit {

namespace {

// [-1, 1] in buckets so narrow that each holds at most one threshold: a bucket knows the code
// below its threshold, and one comparison decides. The multiply-add rounds to nearest, here as in
// the lanes, and is monotone, so a value and a threshold in different buckets compare as these.
constexpr float bucket_scale = 15.5f;
constexpr int bucket_bits = 5;
constexpr int bucket_count = 1 << bucket_bits;

/// The position is exact in double for thresholds and for 1.
constexpr int bucket_of(float value) {
  const double position = double{value} * bucket_scale + bucket_scale;
  return static_cast<int>(static_cast<float>(position));
}

constexpr bool one_threshold_a_bucket() {
  for (size_t i = 1; i < nf4_thresholds.size(); ++i) {
    if (bucket_of(nf4_thresholds[i - 1]) == bucket_of(nf4_thresholds[i])) return false;
  }
  return bucket_of(-1.0f) == 0 && bucket_of(1.0f) == bucket_count - 1;
}
static_assert(one_threshold_a_bucket());

/// Made while compiling, out of reach of the host's rounding mode.
struct Buckets {
  I32Table thresholds = {bucket_bits, {}};  ///< f32 bits
  I32Table codes = {bucket_bits, {}};       ///< the codes of values up to the threshold
};

constexpr Buckets make_buckets() {
  constexpr float no_threshold = 2.0f;  // above every bucket's values
  Buckets buckets;
  buckets.thresholds.entries.fill(std::bit_cast<uint32_t>(no_threshold));
  for (float threshold : nf4_thresholds) {
    const int bucket = bucket_of(threshold);
    buckets.thresholds.entries[static_cast<size_t>(bucket)] = std::bit_cast<uint32_t>(threshold);
    for (int above = bucket + 1; above < bucket_count; ++above) {
      ++buckets.codes.entries[static_cast<size_t>(above)];
    }
  }
  return buckets;
}
constexpr Buckets buckets = make_buckets();

/// The codes of values up to a bucket's threshold, then those of values above.
constexpr ByteTable make_stored_codes() {
  ByteTable table = {bucket_bits + 1, {}};
  for (size_t bucket = 0; bucket < bucket_count; ++bucket) {
    const uint32_t code = buckets.codes.entries[bucket];
    table.entries[bucket] = static_cast<uint16_t>(code);
    table.entries[bucket_count + bucket] = static_cast<uint16_t>(code + 1);
  }
  return table;
}
constexpr ByteTable stored_codes = make_stored_codes();

struct Bucket {
  LaneId number;
  LaneId is_above;  ///< the mask of values above its threshold
};

/// The bucket of f32 lanes.
Bucket bucket_of(LaneBuilder& builder, LaneId value) {
  const auto number = [&](double x) { return builder.float_constant(LaneType::f32, x); };
  // max takes its second operand where the first is NaN.
  const LaneId bounded = builder.float_min(builder.float_max(value, number(-1.0)), number(1.0));
  const LaneId position =
      builder.float_sub_product(number(bucket_scale), bounded, number(-bucket_scale));
  const LaneId bucket = builder.float_to_signed(position, 32, LaneRounding::toward_zero);
  const LaneId threshold = builder.look_up_i32(bucket, buckets.thresholds);
  return {bucket, builder.compare(FloatPredicate::greater, bounded, threshold)};
}

/// Every `distance`-th threshold, as many as that number of bits counts.
I32Table thresholds_from(size_t first, size_t distance, int bits) {
  I32Table table = {bits, {}};
  for (size_t i = 0; first + i * distance < nf4_thresholds.size(); ++i) {
    table.entries[i] = std::bit_cast<uint32_t>(nf4_thresholds[first + i * distance]);
  }
  return table;
}

/// Bisection: each comparison decides one bit of the code, and the bits so far select the threshold
/// of the next one, from four or eight, which one permutation of 32-bit lanes holds (AVX2). A NaN
/// is above no threshold.
LaneId bisect_nf4(LaneBuilder& builder, LaneId value) {
  const auto threshold = [&](size_t i) {
    return builder.float_constant(LaneType::f32, nf4_thresholds[i]);
  };
  const auto is_above = [&](LaneId limit) {
    return builder.compare(FloatPredicate::greater, value, limit);
  };
  const LaneId first = is_above(threshold(7));
  const LaneId second = is_above(builder.select(first, threshold(11), threshold(3)));
  // A mask is -1 where it is true.
  LaneId code = builder.sub(builder.zero_unless(first, builder.constant(LaneType::i32, 2)), second);
  for (const auto& [start, distance, bits] :
       {std::tuple<size_t, size_t, int>(1, 4, 2), {0, 2, 3}}) {
    const LaneId limit = builder.look_up_i32(code, thresholds_from(start, distance, bits));
    code = builder.sub(builder.add(code, code), is_above(limit));
  }
  return code;
}

/// The bits of a 16-bit float as a signed integer in the floats' order.
int in_order(int bits) { return bits < 0x8000 ? bits : (bits ^ 0x7fff) - 0x10000; }

/// The largest float of the format that is no larger than the number, which is in the range of its
/// normal ones, in order: what is above the one is above the other.
int floor_in_order(double number, const FloatFormat& format) {
  const int exponent = std::ilogb(number);
  const double units = std::ldexp(std::fabs(number), format.mantissa_bits - exponent);
  const bool is_negative = number < 0;
  const int significand = static_cast<int>(is_negative ? std::ceil(units) : std::floor(units));
  // The first bit of a significand adds one to the exponent.
  const int magnitude = ((exponent + format.bias - 1) << format.mantissa_bits) + significand;
  return in_order(magnitude + (is_negative ? 0x8000 : 0));
}

}  // namespace

/// The first bit of the code tells which seven thresholds are left, of which those below are
/// counted.
LaneId encode_nf4_of_words(LaneBuilder& builder, LaneId bits, ElementType from) {
  const FloatFormat& format = info(from).format;
  const auto word = [&](int value) {
    return builder.constant(LaneType::i16, static_cast<uint64_t>(value));
  };
  const auto limit = [&](size_t i) { return word(floor_in_order(nf4_thresholds[i], format)); };
  const LaneId magnitude_bits = builder.bit_and(builder.shift_right_signed(bits, 15), word(0x7fff));
  const LaneId ordered = builder.bit_xor(bits, magnitude_bits);
  // Negative NaNs are below all numbers, and the complements of positive ones as well.
  const LaneId is_nan = builder.greater_signed(ordered, word(infinity_bits(from)));
  const LaneId number = builder.bit_xor(ordered, is_nan);
  const LaneId is_upper = builder.greater_signed(number, limit(7));
  LaneId code = builder.zero_unless(is_upper, word(8));
  for (size_t i = 0; i < 7; ++i) {
    const LaneId threshold = builder.select(is_upper, limit(8 + i), limit(i));
    code = builder.sub(code, builder.greater_signed(number, threshold));
  }
  return code;
}

LaneId encode_nf4(LaneBuilder& builder, LaneId value) {
  if (!builder.target().has_avx512()) return bisect_nf4(builder, value);
  const Bucket bucket = bucket_of(builder, value);
  const LaneId code = builder.look_up_i32(bucket.number, buckets.codes);
  const LaneId next = builder.add(code, builder.constant(LaneType::i32, 1));
  return builder.select(bucket.is_above, next, code);
}

Storable encode_nf4_stored(LaneBuilder& builder, LaneId value) {
  if (!builder.has_look_up(stored_codes.index_bits)) {
    return {encode_nf4(builder, value), Narrowing::fits_unsigned};
  }
  const Bucket bucket = bucket_of(builder, value);
  const LaneId above = builder.add(bucket.number, builder.constant(LaneType::i32, bucket_count));
  const LaneId index = builder.select(bucket.is_above, above, bucket.number);
  return {index, Narrowing::look_up_u8, builder.add_byte_table(stored_codes)};
}

}  // namespace castor::jit
