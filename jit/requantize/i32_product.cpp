// SPDX-License-Identifier: Apache-2.0
// The library's products of differences of 32 bits where it loses nothing that shows, in 32-bit
// lanes.
//
// From shifts of 17 on, the bits that the library cuts off a product (i32_accumulator.cpp) are
// below the one that rounds, so that the result is (P + 2^(shift - 1)) >> shift of the product P of
// the difference d and the multiplier s, of 15 bits. That is (floor(P / 2^16) + 2^(shift - 17)) >>
// (shift - 16); and with d = 2^16 a + b, b unsigned, floor(P / 2^16) is a s + floor(b s / 2^16).
// The destination's zero point is added before the last shift.
#include "jit/requantize/embarc_multiplier.hpp"
#include "jit/requantize/methods.hpp"

namespace castor::jit {

namespace {

constexpr std::array<ElementType, 7> constant_types = {
    ElementType::i32, ElementType::i32, ElementType::i32, ElementType::i32,
    ElementType::i32, ElementType::i32, ElementType::i32};

/// The indices of constants.
enum : size_t {
  zero_point,
  scale,
  upper_scale,  ///< scale * 2^16
  addend,
  shift,    ///< the library's less 16
  lowest,   ///< the least x whose difference does not saturate
  highest,  ///< the largest such
};

/// No difference of a smaller magnitude from a zero point saturates.
constexpr int64_t far = (int64_t{1} << 31) - (int64_t{1} << 16);

constexpr bool fits_i32(int64_t value) { return value == static_cast<int32_t>(value); }

/// Whether the results of all x whose difference may saturate do.
bool saturates_when_far(const RequantizeForm& form, const SliceParameters& slice,
                        const EmbarcMultiplier& multiplier) {
  const int64_t product = (far - (int64_t{1} << 15)) * multiplier.scale >> multiplier.shift;
  const int64_t limit = int64_t{1} << (bits_of(form.to_element()) - 1);
  return product > limit + std::abs(slice.to_zero_point) + 1;
}

/// With results that saturate where differences do, the same bounds of x serve all slices.
template <bool far_saturates>
class I32Product final : public RequantizeMethod {
 public:
  std::string_view name() const override {
    return far_saturates ? "i32 product that saturates" : "i32 product";
  }

  bool takes(const RequantizeForm& form) const override {
    return !form.is_exact() && form.rounds_half_up() && form.from == QuantizedFormat::sa32 &&
           form.to && !(far_saturates && form.to == QuantizedFormat::sa32);
  }

  std::span<const ElementType> constants(const RequantizeForm&) const override {
    return std::span(constant_types).first(far_saturates ? lowest : constant_types.size());
  }

  std::optional<SliceConstants> prepare(const RequantizeForm& form, const SliceParameters& slice,
                                        Effort) const override {
    const EmbarcMultiplier multiplier = embarc_multiplier_of_15_bits(slice, true);
    const int count = multiplier.shift - 16;
    if (count < 1 || count > 31) return std::nullopt;
    if (far_saturates && !saturates_when_far(form, slice, multiplier)) return std::nullopt;
    const int64_t sum = (int64_t{1} << (count - 1)) + slice.to_zero_point * (int64_t{1} << count);
    const int64_t max = int64_t{multiplier.scale} << 15;
    if (!fits_i32(sum) || !fits_i32(sum - max) || !fits_i32(sum + max)) return std::nullopt;
    const int32_t zero = slice.from_zero_point;
    return SliceConstants{constant_bits(zero),
                          constant_bits(multiplier.scale),
                          constant_bits(multiplier.scale << 16),
                          constant_bits(static_cast<int32_t>(sum)),
                          constant_bits(count),
                          constant_bits(std::numeric_limits<int32_t>::min() + std::max(zero, 0)),
                          constant_bits(std::numeric_limits<int32_t>::max() + std::min(zero, 0))};
  }

  void lower(const RequantizeForm&, const RequantizeLanes& lanes) const override {
    LaneBuilder& b = lanes.builder;
    const auto bound = [&](int64_t value, size_t index) {
      return far_saturates ? b.constant(LaneType::i32, static_cast<uint32_t>(value))
                           : lanes.constant(index);
    };
    const LaneId x =
        b.min_signed(b.max_signed(lanes.integers(), bound(-far, lowest)), bound(far, highest));
    const LaneId d = b.sub(x, lanes.constant(zero_point));
    const LaneId lower = b.mul_high_u16(d, lanes.constant(scale));
    const LaneId product = b.add_dot_i16_pairs(lower, d, lanes.constant(upper_scale));
    const LaneId sum = b.add(product, lanes.constant(addend));
    lanes.store(b.shift_right_signed_by(sum, lanes.constant(shift)), Narrowing::saturate_to_signed);
  }
};

}  // namespace

const RequantizeMethod& saturating_i32_product_method() {
  static constinit const I32Product<true> method;
  return method;
}

const RequantizeMethod& i32_product_method() {
  static constinit const I32Product<false> method;
  return method;
}

}  // namespace castor::jit
