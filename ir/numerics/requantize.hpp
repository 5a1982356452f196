// SPDX-License-Identifier: Apache-2.0
// One element of a requantization.
#pragma once

#include <cstdint>

#include "ir/types/quantization.hpp"

namespace castor::numerics {

/// What an element of one slice stands for: (x - zero_point) * scale / 2^frac, or f32 itself.
struct SliceQuantization {
  std::optional<QuantizedFormat> format{};  ///< nothing: f32
  int32_t scale = 1;                        ///< 1 to 32767
  int32_t frac = 0;                         ///< -128 to 127
  int32_t zero_point = 0;                   ///< -32768 to 32767
};

/// Converts the raw bits of a source element to those of the destination's container. f32 to f32
/// copies the bits. Inputs that the library leaves undefined saturate (f32 beyond i32 after
/// scaling), and NaN gives the zero point, saturated to the container. Pure integer code. Thread
/// safe. Source: embARC MLI 2.0, data conversion group, for `exact`; for `embarc` the library
/// itself, whose arithmetic is written down in ir/numerics/requantize_embarc.cpp.
uint64_t requantize(uint64_t bits, const SliceQuantization& from, const SliceQuantization& to,
                    const RequantizeOptions& options);

}  // namespace castor::numerics
