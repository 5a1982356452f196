// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/lane_tensor.hpp"

#include <bit>

#include "jit/lower/convert.hpp"
#include "jit/lower/small_float.hpp"

namespace castor::jit {

namespace {

size_t slot_of(int bits) { return static_cast<size_t>(std::countr_zero(unsigned(bits)) - 3); }

bool clamps(Narrowing narrowing) {
  return narrowing == Narrowing::saturate_to_signed || narrowing == Narrowing::saturate_to_unsigned;
}

/// The lanes with a saturating narrowing carried out: in the element's range.
LaneId clamped(LaneBuilder& builder, ElementType element, LaneId lanes) {
  const LaneType type = integer_lane(bits_of(builder.type_of(lanes)));
  const LaneId low = builder.constant(type, static_cast<uint64_t>(integer_min(element)));
  const LaneId high = builder.constant(type, integer_max(element));
  return builder.min_signed(builder.max_signed(lanes, low), high);
}

}  // namespace

LaneTensor LaneTensor::from_source(LaneBuilder& builder, ElementType element, int source) {
  LaneTensor tensor(builder, element);
  tensor.source_ = source;
  return tensor;
}

LaneTensor LaneTensor::computed(LaneBuilder& builder, ElementType element, Storable storable) {
  LaneTensor tensor(builder, element);
  tensor.computed_ = storable;
  return tensor;
}

LaneTensor LaneTensor::encoded(LaneBuilder& builder, ElementType element, Storable storable,
                               LaneId value, const ConvertOptions& options) {
  LaneTensor tensor = computed(builder, element, storable);
  tensor.value_ = value;
  tensor.options_ = options;
  return tensor;
}

LaneTensor LaneTensor::from_mask(LaneBuilder& builder, LaneId mask) {
  LaneTensor tensor(builder, ElementType::boolean);
  tensor.mask_ = mask;
  return tensor;
}

LaneTensor& LaneTensor::holds_integer(LaneId value, int64_t max) {
  f32_ = value;
  max_integer_ = max;
  return *this;
}

/// 1 where true, else 0.
LaneId LaneTensor::ones_where_true(int bits) {
  const LaneId one = builder_->constant(integer_lane(bits), 1);
  return builder_->zero_unless(builder_->mask_resize(mask_, bits), one);
}

int LaneTensor::natural_bits() const {
  if (is_mask()) return builder_->target().has_avx512() ? 8 : bits_of(builder_->type_of(mask_));
  return source_ >= 0 ? lane_bits_of(element_) : bits_of(builder_->type_of(computed_.lanes));
}

/// Codes of a signed sub-byte type, in lanes of any width, as numbers.
LaneId LaneTensor::sign_extended(LaneId codes) {
  if (!is_sub_byte(element_) || !is_signed_integer(element_)) return codes;
  const LaneType lane = integer_lane(bits_of(builder_->type_of(codes)));
  const LaneId sign = builder_->constant(lane, uint64_t{1} << (bits_of(element_) - 1));
  return builder_->sub(builder_->bit_xor(codes, sign), sign);
}

/// What a sink would encode, for consumers other than a sink.
LaneId LaneTensor::encoded_in_lanes() {
  if (!is_integer(element_)) return encode_small(*builder_, value_, element_, options_);
  LaneTensor value = computed(*builder_, ElementType::f32, {value_, Narrowing::truncate});
  return convert_float_to_integer(*builder_, value, element_, options_).as_bits();
}

LaneId LaneTensor::element_wide() {
  // The computed lanes cut down to the element's own width.
  LaneId lanes = computed_.lanes;
  if (encodes(computed_.narrowing)) {
    lanes = encoded_in_lanes();
  } else if (computed_.narrowing == Narrowing::high_half) {
    lanes = builder_->shift_right(lanes, bits_of(element_));
  } else if (clamps(computed_.narrowing)) {
    lanes = clamped(*builder_, element_, lanes);
  }
  lanes = builder_->truncate(lanes, lane_bits_of(element_));
  if (!is_sub_byte(element_)) return lanes;
  return builder_->bit_and(lanes, builder_->constant(LaneType::i8, (1u << bits_of(element_)) - 1));
}

LaneId LaneTensor::as_bits() {
  if (is_integer(element_) && !is_sub_byte(element_) && source_ >= 0) {
    return as_integer(bits_of(element_));
  }
  if (is_mask()) return as_integer(8);
  if (bits_ == no_lane) {
    bits_ = source_ >= 0 ? builder_->load(source_, integer_lane(lane_bits_of(element_)))
                         : element_wide();
  }
  return bits_;
}

/// Whether the computed lanes hold the element's value, not only its low bits. What fits unsigned
/// is the code of a signed element.
bool LaneTensor::has_exact_lanes() const {
  const Narrowing narrowing = computed_.narrowing;
  return bits_of(builder_->type_of(computed_.lanes)) == bits_of(element_) ||
         narrowing == Narrowing::fits_signed || clamps(narrowing) ||
         (narrowing == Narrowing::fits_unsigned && !is_signed_integer(element_));
}

LaneId LaneTensor::as_integer(int bits) {
  LaneId& cached = integers_[slot_of(bits)];
  if (cached != no_lane) return cached;
  if (is_mask()) return cached = ones_where_true(bits);
  if (source_ >= 0) {
    cached = sign_extended(builder_->load(source_, integer_lane(bits)));
    if (is_boolean(element_)) cached = builder_->is_nonzero(cached);
    return cached;
  }
  if (is_boolean(element_) && computed_.narrowing == Narrowing::truncate) {
    cached = builder_->is_nonzero(computed_.lanes);  // bytes as they were stored
    return cached = builder_->extend_zero(cached, bits);
  }
  // Lanes that hold the value exactly need no detour through the element's own width.
  LaneId lanes = clamps(computed_.narrowing) ? clamped(*builder_, element_, computed_.lanes)
                 : has_exact_lanes()         ? computed_.lanes
                                             : sign_extended(as_bits());
  const int lane_bits = bits_of(builder_->type_of(lanes));
  if (lane_bits > bits) {
    lanes = builder_->truncate(lanes, bits);
  } else {
    lanes = is_signed_integer(element_) ? builder_->extend_sign(lanes, bits)
                                        : builder_->extend_zero(lanes, bits);
  }
  return cached = lanes;
}

LaneId LaneTensor::bf16_as_f32() {
  if (source_ >= 0 && !builder_->target().has_avx512())
    return builder_->shift_left(builder_->load(source_, LaneType::i32), 16);
  if (computed_.narrowing == Narrowing::high_half) {
    return builder_->bit_and(computed_.lanes, builder_->constant(LaneType::i32, 0xffff0000));
  }
  return builder_->widen_to_high_half(as_bits());
}

LaneId LaneTensor::as_f32() {
  if (f32_ == no_lane) {
    const bool rounds_in_f32 =
        value_ != no_lane && is_float(element_) && options_ == ConvertOptions{};
    f32_ = rounds_in_f32                  ? round_to_small(*builder_, value_, element_)
           : element_ == ElementType::f32 ? as_bits()
           : element_ == ElementType::f16 ? builder_->f16_to_f32(as_bits())
           : element_ == ElementType::bf16
               ? bf16_as_f32()
               : decode_small(*builder_, as_bits(), element_, may_be_nan_);
  }
  return f32_;
}

LaneId LaneTensor::as_f64() {
  if (f64_ == no_lane) {
    const bool by_instruction = element_ == ElementType::f16 && builder_->has_f16_lanes();
    f64_ = element_ == ElementType::f64 ? as_bits()
           : by_instruction             ? builder_->f16_to_f64(as_bits())
                                        : builder_->f32_to_f64(as_f32());
  }
  return f64_;
}

LaneId LaneTensor::as_low_bits() {
  const Narrowing narrowing = computed_.narrowing;
  const bool has_garbage_above =
      source_ < 0 && is_sub_byte(element_) && !clamps(narrowing) && !encodes(narrowing);
  return has_garbage_above ? builder_->truncate(computed_.lanes, lane_bits_of(element_))
                           : as_bits();
}

LaneId LaneTensor::as_mask(int bits) {
  if (is_mask()) return builder_->mask_resize(mask_, bits);
  if (builder_->target().has_avx512()) bits = natural_bits();  // opmasks have no width
  LaneId& cached = masks_[slot_of(bits)];
  if (cached == no_lane) {
    cached = builder_->is_set(source_ >= 0 ? builder_->load(source_, integer_lane(bits))
                                           : as_integer(bits));
  }
  return cached;
}

Storable LaneTensor::as_storable() {
  if (is_mask()) return {as_integer(natural_bits()), Narrowing::fits_unsigned};
  return source_ >= 0 ? Storable{as_bits(), Narrowing::truncate} : computed_;
}

}  // namespace castor::jit
