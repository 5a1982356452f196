// SPDX-License-Identifier: Apache-2.0
// The lanes of one IR value, in whichever representation its consumers ask for.
#pragma once

#include <array>

#include "ir/convert_options.hpp"
#include "jit/lane/builder.hpp"

namespace castor::jit {

/// What a sink can store at the least cost: lanes, and how they become elements.
struct Storable {
  LaneId lanes = no_lane;
  Narrowing narrowing = Narrowing::truncate;
  int32_t cells = -1;  ///< of a narrowing that encodes: index into the program's cell tables
};

/// One IR value in lanes. It begins as a source that is not loaded yet, or with the representation
/// that its operation computed; every other representation is derived on demand, once.
class LaneTensor {
 public:
  static LaneTensor from_source(LaneBuilder& builder, ElementType element, int source);
  /// Computed lanes that `storable.narrowing` turns into elements. Lanes of the element's own
  /// width are the element's bits (or, for f32 and f64, the float).
  static LaneTensor computed(LaneBuilder& builder, ElementType element, Storable storable);

  /// Lanes that a sink encodes by cells; `value` is what they stand for, in f32, for consumers that
  /// need the codes in lanes.
  static LaneTensor by_cells(LaneBuilder& builder, ElementType element, Storable storable,
                             LaneId value, const ConvertOptions& options);

  ElementType element() const { return element_; }

  /// An integer or boolean as an integer of that many bits (at least its own), extended by its
  /// sign; booleans are 0 or 1.
  LaneId as_integer(int bits);
  /// The width in which as_integer costs least.
  int natural_bits() const;
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
  LaneId sign_extended(LaneId codes);
  bool has_exact_lanes() const;
  LaneId bf16_as_f32();

  LaneBuilder* builder_;
  ElementType element_;
  int source_ = -1;
  Storable computed_{};
  LaneId value_ = no_lane;    // f32, of lanes that a sink encodes
  ConvertOptions options_{};  // that it is encoded with
  std::array<LaneId, 4> integers_ = {no_lane, no_lane, no_lane, no_lane};
  LaneId bits_ = no_lane;
  LaneId f32_ = no_lane;
  LaneId f64_ = no_lane;
};

}  // namespace castor::jit
