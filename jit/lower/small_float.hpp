// SPDX-License-Identifier: Apache-2.0
// Floats of at most eight bits in f32 lanes, and back.
#pragma once

#include <optional>

#include "ir/types/convert_options.hpp"
#include "jit/lane/builder.hpp"

namespace castor::jit {

/// What is known of lanes that hold integers: their largest magnitude, and whether some are
/// negative.
struct Integers {
  double max;
  bool is_signed;
};

/// The f32 of each code (i8 lanes, upper bits zero) of a float of at most eight bits, f8e8m0 or
/// nf4; exact, NaNs quiet, if there may be some.
LaneId decode_small(LaneBuilder& builder, LaneId codes, ElementType type, bool may_be_nan);

/// The magnitude from which on a number overflows: the number after the largest finite one, or,
/// where overflow gives that, the largest finite number itself. NaNs have larger bits.
double magnitude_limit(ElementType to, const ConvertOptions& options);
/// Whether NaNs, cut off at the magnitude limit, get their code that way.
bool limit_gives_nans(ElementType to, const ConvertOptions& options);

/// The code (i32 lanes, upper bits zero) of each f32, rounded once; exact too of a wider source
/// that was rounded to odd, or, for nf4, up. Options are canonical.
LaneId encode_small(LaneBuilder& builder, LaneId value, ElementType to,
                    const ConvertOptions& options);

/// The same codes as Narrowing::signed_code has them, which costs less on the way to memory.
/// Nothing where formats, options or the target do not allow it.
std::optional<LaneId> encode_signed(LaneBuilder& builder, LaneId value, ElementType to,
                                    const ConvertOptions& options,
                                    const std::optional<Integers>& integers);

/// The codes of the magnitudes as Narrowing::magnitude_code has them, for targets without AVX-512.
/// Nothing where formats, options or the target do not allow it.
std::optional<LaneId> encode_magnitude(LaneBuilder& builder, LaneId value, ElementType to,
                                       const ConvertOptions& options,
                                       const std::optional<Integers>& integers);

/// f8e8m0 (i32 lanes, upper bits zero) of any f32; exact too of a wider one rounded to odd.
LaneId encode_power(LaneBuilder& builder, LaneId value, const ConvertOptions& options);
/// f8e8m0 of integers in f32, in the low bytes of the lanes.
LaneId encode_power(LaneBuilder& builder, LaneId value, const ConvertOptions& options,
                    const Integers& integers);
/// f8e8m0 of f16 in f32, in the low bytes of the lanes; rounded to nearest, with AVX-512.
LaneId encode_power_of_f16(LaneBuilder& builder, LaneId value, Overflow overflow);

/// f8e5m2 as Narrowing::f16_to_e5m2 takes it: the value as f16, its last bits folded in one, so
/// that rounding once more is rounding once.
LaneId fold_to_f16(LaneBuilder& builder, LaneId value, const ConvertOptions& options);

/// The f32 of the code that encode_small gives a float type, options by default.
LaneId round_to_small(LaneBuilder& builder, LaneId value, ElementType to);

/// f8e5m2 of f16 (i16 lanes, rounded to odd if the source was wider), rounded to nearest even: the
/// upper halves of the lanes. Infinities stay; NaNs become quiet.
LaneId round_to_e5m2(LaneBuilder& builder, LaneId halves);

}  // namespace castor::jit
