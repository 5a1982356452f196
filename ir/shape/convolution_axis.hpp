// SPDX-License-Identifier: Apache-2.0
// One spatial axis of a convolution or of pooling, as far as its extents are known: inside ir/
// only.
//
// One set of rules serves types and bound extents: an extent that is not known yet is `unknown`,
// and whatever depends on it is neither checked nor computed.
#pragma once

#include <string>

#include "ir/shape/convolution.hpp"

namespace castor::detail {

inline constexpr int64_t unknown = Dim::unknown_extent;

inline bool is_known(int64_t extent) { return extent != unknown; }

/// Whether both are known, but differ.
inline bool differ(int64_t a, int64_t b) { return is_known(a) && is_known(b) && a != b; }

/// A rule of windows that an operation of that op breaks.
Error window_mistake(OpKind op, const std::string& detail);

/// Spatial axis `i` of an input of that extent and a w whose axis i + 2 has that extent (unknown of
/// ops without a w); `options` are in full length. `output` is unknown where it depends on what is,
/// and so are paddings of auto_pad = same_upper and same_lower.
Result<ConvolutionAxis> axis_of(OpKind op, const ConvolutionOptions& options, int i, int64_t input,
                                int64_t extent_of_w);

/// Whether the output surely is as long as the input, whatever that is.
bool keeps_extent(const ConvolutionOptions& options, const ConvolutionAxis& axis);

}  // namespace castor::detail
