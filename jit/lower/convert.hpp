// SPDX-License-Identifier: Apache-2.0
// Lowering of `convert` to lanes. Semantics: ir/README.md, Convert.
#pragma once

#include <optional>

#include "ir/types/convert_options.hpp"
#include "jit/lower/lane_tensor.hpp"
#include "jit/lower/small_float.hpp"

namespace castor::jit {

/// The lanes of `source` converted to another element type. `options` are canonical
/// (canonical_options) and admitted for the pair.
LaneTensor lower_convert(LaneBuilder& builder, LaneTensor& source, ElementType to,
                         const ConvertOptions& options);

// One function per family; `lower_convert` picks by the kinds of the two types.
LaneTensor convert_same_type(LaneBuilder& builder, LaneTensor& source,
                             const ConvertOptions& options);
LaneTensor convert_to_boolean(LaneBuilder& builder, LaneTensor& source);
LaneTensor convert_integer_to_integer(LaneBuilder& builder, LaneTensor& source, ElementType to,
                                      const ConvertOptions& options);
LaneTensor convert_integer_to_float(LaneBuilder& builder, LaneTensor& source, ElementType to,
                                    const ConvertOptions& options);
LaneTensor convert_float_to_integer(LaneBuilder& builder, LaneTensor& source, ElementType to,
                                    const ConvertOptions& options);
/// A float of at most 32 bits as i32 that is clamped to a range, as far as its slack demands;
/// nothing where the target has no fast way.
std::optional<LaneTensor> convert_float_to_range(LaneBuilder& builder, LaneTensor& source,
                                                 const SmallRange& range, const RangeSlack& slack,
                                                 Rounding rounding);
LaneTensor convert_float_to_float(LaneBuilder& builder, LaneTensor& source, ElementType to,
                                  const ConvertOptions& options);

/// An f32 that will be stored as a type of at most its range and precision (f16, bf16, f32,
/// floats of at most eight bits, f8e8m0, nf4), rounded once. `integers`: nothing if it can be any
/// float.
LaneTensor narrow_f32(LaneBuilder& builder, LaneId value, ElementType to,
                      const ConvertOptions& options, const std::optional<Integers>& integers);

/// An f32 as a small float with fewer than bf16's exponent bits, where its numbers have no more
/// than bf16's significands: the upper half, of which a store makes the code. Nothing where the
/// target or the format has no table for it.
std::optional<LaneTensor> encode_high_half(LaneBuilder& builder, LaneId value, ElementType to,
                                           const ConvertOptions& options);

/// Clamps to the largest finite values of `to`, infinities included; NaNs pass as they are.
LaneId clamp_to_finite(LaneBuilder& builder, LaneId value, ElementType to);
/// Clamps finite numbers alone: infinities and NaNs pass as they are.
LaneId clamp_finite_numbers(LaneBuilder& builder, LaneId value, ElementType to);

/// The largest finite value of a float type.
double largest_finite(ElementType type);

}  // namespace castor::jit
