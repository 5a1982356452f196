// SPDX-License-Identifier: Apache-2.0
// Reading quantized formats.
#pragma once

#include "ir/shape/shape.hpp"
#include "ir/text/cursor.hpp"

namespace castor::text {

/// `sa8<axis = 1, scale = [3, 4], frac = [7, 8], zero_point = ?>`, whose format's name stands here.
/// Entries are given once, in any order; frac, and scale of asymmetric formats, are required. The
/// verifier checks numbers.
QuantizationPtr read_quantization(Cursor& cursor);

}  // namespace castor::text
