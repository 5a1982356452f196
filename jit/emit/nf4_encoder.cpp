// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/nf4_encoder.hpp"

#include <array>
#include <cmath>
#include <memory>

#include "jit/emit/vector_constant.hpp"
#include "jit/lower/nf4.hpp"
#include "jit/memory/published.hpp"

namespace castor::jit {

namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint8_t a_where_c_else_b = 0xe4;     // vpternlog
constexpr uint8_t compare_not_less_equal = 6;  // vpcmpu

// A bucket is a quarter of a binade of one sign, 64 of them: the sign, a binade's number, and two
// bits of the mantissa. It holds at most one of nf4's thresholds, with which the lower bits of the
// mantissa compare. Binades from 2^-5 to 1/2 are number 1 to 5; what is below is number 0, from 1
// on it is number 6, and beyond 2 number 7.
constexpr int bucket_count = 64;
constexpr int bucket_sign = 0x20;
constexpr int last_binade = 7;
constexpr int quarter_bits = 0x03;
constexpr int exponent_of_zeroth = -6;

/// The lower bits of a mantissa that tell apart the numbers of a bucket.
constexpr int low_bits_of(ElementType from) { return from == ElementType::f16 ? 8 : 5; }

double number_in(int bucket, int low, int low_bits) {
  const int binade = bucket >> 2 & last_binade;
  const double size = (1 + (bucket & quarter_bits) / 4.0 + std::ldexp(low, -2 - low_bits)) *
                      std::ldexp(1.0, binade + exponent_of_zeroth);
  const double bounded = binade == 0 ? 0 : size;
  return (bucket & bucket_sign) != 0 ? -bounded : bounded;
}

/// By the bucket: the last low bits that have the first code, that code, and the code of those
/// above.
struct Tables {
  std::array<uint8_t, bucket_count> last = {};
  std::array<uint8_t, bucket_count> first_code = {};
  std::array<uint8_t, bucket_count> second_code = {};
};

std::unique_ptr<const Tables> make_tables(int low_bits) {
  auto tables = std::make_unique<Tables>();
  const int end = 1 << low_bits;
  for (size_t bucket = 0; bucket < bucket_count; ++bucket) {
    const auto code = [&](int low) {
      return nf4_code(number_in(static_cast<int>(bucket), low, low_bits));
    };
    int last = 0;
    while (last + 1 < end && code(last + 1) == code(0)) ++last;
    tables->last[bucket] = static_cast<uint8_t>(last);
    tables->first_code[bucket] = static_cast<uint8_t>(code(0));
    tables->second_code[bucket] = static_cast<uint8_t>(code(end - 1));
  }
  return tables;
}

/// Made once a process: an emitter asks for them at each vector.
const Tables& tables_of(bool from_f16) {
  static constinit Published<const Tables> of_f16;
  static constinit Published<const Tables> of_bf16;
  if (from_f16) return of_f16.get([] { return make_tables(low_bits_of(ElementType::f16)); });
  return of_bf16.get([] { return make_tables(low_bits_of(ElementType::bf16)); });
}

Bytes vector_of(const std::array<uint8_t, bucket_count>& table) {
  return {table.begin(), table.end()};
}

// ---- f16: the upper byte has the sign, the exponent and two bits of the mantissa.
constexpr int f16_magnitude = 0x7f;
constexpr int f16_infinity = 0x7c;
constexpr int f16_zeroth = (15 + exponent_of_zeroth) << 2;

// ---- bf16: the lower byte has the exponent's last bit and the mantissa.
constexpr int bf16_infinity = 0xff;  ///< the exponent
constexpr int bf16_zeroth = 127 + exponent_of_zeroth;
constexpr int bf16_mantissa = 0x7f;
constexpr int bf16_low_bits = 0x1f;

constexpr int code_bits = 4;
constexpr int one = 1;
constexpr int last_bucket = last_binade << 2 | quarter_bits;

}  // namespace

Nf4Encoder::Nf4Encoder(ElementType from)
    : MergedBytesEncoder(
          [from] {
            const bool is_f16 = from == ElementType::f16;
            const Tables& tables = tables_of(is_f16);
            std::vector<Bytes> constants = {vector_of(tables.last), vector_of(tables.first_code),
                                            vector_of(tables.second_code), bytes(bucket_sign),
                                            bytes(one)};
            const std::vector<int> more =
                is_f16 ? std::vector<int>{f16_magnitude, f16_infinity, f16_zeroth, last_bucket}
                       : std::vector<int>{bf16_infinity, bf16_zeroth, bf16_mantissa,
                                          bf16_low_bits, last_binade, quarter_bits};
            for (const int value : more) constants.push_back(bytes(value));
            return constants;
          }(),
          code_bits),
      from_f16_(from == ElementType::f16) {}

/// The bucket of each magnitude.
OwnedVector Nf4Encoder::emit_f16_buckets(LaneEmitter& emitter, const Xbyak::Zmm& upper,
                                         const Xbyak::Zmm& lower,
                                         const Xbyak::Opmask& is_nan) const {
  Assembler& code = emitter.code();
  OwnedVector result = emitter.scratch();
  const OwnedVector work = emitter.scratch();
  const OwnedMask has_low = emitter.scratch_mask();
  OwnedVector fallback;
  const auto all = [&](int value) { return constant(emitter, bytes(value), fallback); };
  const Xbyak::Zmm bucket = register_of(result);
  const Xbyak::Zmm size = register_of(work);
  code.vpandd(bucket, upper, all(f16_magnitude));
  // Above infinity are NaNs: by the upper byte, or by the lower one.
  code.vptestmb(has_low.get(), lower, lower);
  code.vmovdqa64(size, bucket);
  code.vpaddb(size | has_low.get(), bucket, all(one));
  code.vpcmpub(is_nan, size, all(f16_infinity), compare_not_less_equal);
  code.vpsubusb(bucket, bucket, all(f16_zeroth));
  code.vpminub(bucket, bucket, all(last_bucket));
  return result;
}

/// The bucket of each magnitude; the low bits are left in `lower`.
OwnedVector Nf4Encoder::emit_bf16_buckets(LaneEmitter& emitter, const Xbyak::Zmm& upper,
                                          const Xbyak::Zmm& lower,
                                          const Xbyak::Opmask& is_nan) const {
  Assembler& code = emitter.code();
  OwnedVector result = emitter.scratch();
  const OwnedVector work = emitter.scratch();
  const OwnedMask last_bit = emitter.scratch_mask();
  OwnedVector fallback;
  const auto all = [&](int value) { return constant(emitter, bytes(value), fallback); };
  const Xbyak::Zmm bucket = register_of(result);
  const Xbyak::Zmm exponent = register_of(work);
  code.vpmovb2m(last_bit.get(), lower);
  code.vpaddb(exponent, upper, upper);
  code.vpaddb(exponent | last_bit.get(), exponent, all(one));
  code.vpcmpeqb(is_nan, exponent, all(bf16_infinity));
  const Xbyak::Opmask& has_exponent = is_nan;
  code.vptestmb(is_nan | has_exponent, lower, all(bf16_mantissa));
  code.vpsubusb(exponent, exponent, all(bf16_zeroth));
  code.vpminub(exponent, exponent, all(last_binade));
  code.vpsllw(exponent, exponent, 2);
  code.vpsrlw(bucket, lower, 5);
  code.vpternlogd(bucket, exponent, all(quarter_bits), a_where_c_else_b);
  code.vpandd(lower, lower, all(bf16_low_bits));
  return result;
}

OwnedVector Nf4Encoder::emit_codes(LaneEmitter& emitter, OwnedVector upper,
                                   OwnedVector lower) const {
  Assembler& code = emitter.code();
  const Tables& tables = tables_of(from_f16_);
  const Xbyak::Zmm high = register_of(upper);
  const Xbyak::Zmm low = register_of(lower);
  const OwnedMask nan_mask = emitter.scratch_mask();
  const OwnedVector index = from_f16_ ? emit_f16_buckets(emitter, high, low, nan_mask.get())
                                      : emit_bf16_buckets(emitter, high, low, nan_mask.get());
  const OwnedMask above_mask = emitter.scratch_mask();
  OwnedVector result = emitter.scratch();
  OwnedVector fallback;
  const Xbyak::Zmm bucket = register_of(index);
  const Xbyak::Zmm codes = register_of(result);
  const auto of = [&](const std::array<uint8_t, bucket_count>& table) {
    return constant(emitter, vector_of(table), fallback);
  };
  code.vpsrlw(high, high, 2);
  code.vpternlogd(high, bucket, constant(emitter, bytes(bucket_sign), fallback), a_where_c_else_b);
  code.vpermb(codes, high, of(tables.last));
  code.vpcmpub(above_mask.get(), low, codes, compare_not_less_equal);
  code.vpermb(codes, high, of(tables.first_code));
  code.vpermb(codes | above_mask.get(), high, of(tables.second_code));
  code.vpsubb(codes | nan_mask.get(), codes, codes);
  return result;
}

}  // namespace castor::jit
