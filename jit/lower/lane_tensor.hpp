// SPDX-License-Identifier: Apache-2.0
// The lanes of one IR value, in whichever representation its consumers ask for.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "ir/types/convert_options.hpp"
#include "jit/lane/builder.hpp"
#include "jit/lower/rounded_values.hpp"

namespace castor::jit {

/// What a sink can store at the lowest cost: lanes, and how they become elements.
struct Storable {
  LaneId lanes = no_lane;
  Narrowing narrowing = Narrowing::truncate;
  int32_t table = -1;  ///< of a narrowing that encodes: index into the program's tables of its kind
  LaneId signs = no_lane;  ///< lanes with the codes' signs, for Narrowing::magnitude_code
};

/// One IR value in lanes. It begins as a source that is not loaded yet, or with the representation
/// that its operation computed; every other representation is derived on demand, once.
class LaneTensor {
 public:
  static LaneTensor from_source(LaneBuilder& builder, ElementType element, int source);
  /// Computed lanes that `storable.narrowing` turns into elements. Lanes of the element's own
  /// width are the element's bits (or, for f32 and f64, the float). Booleans are 0 or 1, but bytes
  /// of any value where they are truncated.
  static LaneTensor computed(LaneBuilder& builder, ElementType element, Storable storable);

  /// Lanes that are the codes of `value` (f32 lanes, from which encode_small makes the codes, or
  /// convert_float_to_integer integers), or that a sink encodes by table to the same codes. `value`
  /// is for consumers that need f32, or the codes in lanes.
  static LaneTensor encoded(LaneBuilder& builder, ElementType element, Storable storable,
                            LaneId value, const ConvertOptions& options);

  /// Truth values: a boolean tensor.
  static LaneTensor from_mask(LaneBuilder& builder, LaneId mask);

  ElementType element() const { return element_; }

  /// Says that a float is an integer of magnitude at most `max` (zeros of either sign included),
  /// which its format holds exactly. `value` is the integer in f32, so that no consumer needs to
  /// round.
  LaneTensor& holds_integer(LaneId value, int64_t max);
  /// The magnitude of holds_integer, where it is known.
  std::optional<int64_t> max_integer() const { return max_integer_; }

  /// Says that a float's elements are all numbers of at most that magnitude.
  void holds_numbers_up_to(double magnitude) { magnitude_ = std::min(magnitude_, magnitude); }
  /// Whether every element of a float is known to be a number that i32 can hold, however it is
  /// rounded.
  bool fits_i32() const { return magnitude_ < 0x1p30; }
  /// Whether they are known to be numbers of at most that magnitude.
  bool holds_at_most(double magnitude) const { return magnitude_ <= magnitude; }

  /// Says that no element of a float is NaN.
  LaneTensor& holds_no_nan() {
    may_be_nan_ = false;
    return *this;
  }
  bool may_be_nan() const { return may_be_nan_; }

  /// Says that an integer is in a range.
  LaneTensor& holds_range(const SmallRange& range) {
    range_ = range;
    return *this;
  }
  std::optional<SmallRange> range() const { return range_; }

  /// An integer or boolean as an integer of that many bits (at least its own), extended by its
  /// sign; booleans are 0 or 1.
  LaneId as_integer(int bits);
  /// The width in which as_integer, and of truth values as_mask, costs least.
  int natural_bits() const;
  /// Lanes of lane_bits_of(element) whose low bits are the integer's; those above may be anything.
  LaneId as_low_bits();
  /// Whether the tensor began as truth values.
  bool is_mask() const { return mask_ != no_lane; }
  /// A boolean as truth values that belong to lanes of that width.
  LaneId as_mask(int bits);
  /// A float of at most 32 bits, f8e8m0 or nf4 as f32, exactly. A NaN of bf16 or f32 may still be
  /// signalling.
  LaneId as_f32();
  /// Any float as f64, exactly; NaNs are quiet unless the value was f64 itself.
  LaneId as_f64();
  /// The element's own bits in lanes of lane_bits_of(element), those above zero. Boolean bytes are
  /// as stored.
  LaneId as_bits();
  /// For a sink.
  Storable as_storable();

 private:
  LaneTensor(LaneBuilder& builder, ElementType element) : builder_(&builder), element_(element) {}
  LaneId element_wide();
  LaneId encoded_in_lanes();
  LaneId ones_where_true(int bits);
  LaneId sign_extended(LaneId codes);
  bool has_exact_lanes() const;
  LaneId bf16_as_f32();

  LaneBuilder* builder_;
  ElementType element_;
  int source_ = -1;
  Storable computed_{};
  LaneId mask_ = no_lane;     // of a tensor that began as truth values
  LaneId value_ = no_lane;    // of lanes that are encoded: f32, not rounded yet
  ConvertOptions options_{};  // of that encoding
  using ByWidth = std::array<LaneId, 4>;
  ByWidth integers_ = {no_lane, no_lane, no_lane, no_lane};
  ByWidth masks_ = {no_lane, no_lane, no_lane, no_lane};
  LaneId bits_ = no_lane;
  LaneId f32_ = no_lane;
  LaneId f64_ = no_lane;
  std::optional<int64_t> max_integer_;
  double magnitude_ = std::numeric_limits<double>::infinity();
  bool may_be_nan_ = true;
  std::optional<SmallRange> range_;
};

/// The magnitude up to which a float format holds every integer.
constexpr int64_t exact_integers(ElementType format) {
  return int64_t{1} << (info(format).format.mantissa_bits + 1);
}

}  // namespace castor::jit
