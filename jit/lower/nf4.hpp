// SPDX-License-Identifier: Apache-2.0
// nf4, OpenVINO's codebook of 16 values, on the host and in lanes.
#pragma once

#include "ir/types/nf4.hpp"
#include "jit/lane/builder.hpp"
#include "jit/lower/lane_tensor.hpp"

namespace castor::jit {

/// The code of a number or an infinity.
constexpr int nf4_code(double value) {
  int code = 0;
  for (float threshold : nf4_thresholds) code += value > threshold ? 1 : 0;
  return code;
}

/// The codes (i32 lanes, 0 to 15) of f32 lanes; NaN has code 0.
LaneId encode_nf4(LaneBuilder& builder, LaneId value);

/// The same as stores put them into elements, which may have looked them up.
Storable encode_nf4_stored(LaneBuilder& builder, LaneId value);

/// The codes (i16 lanes, 0 to 15) of 16-bit floats, given by their bits; NaN has code 0. For
/// targets without AVX-512, where masks are lanes.
LaneId encode_nf4_of_words(LaneBuilder& builder, LaneId bits, ElementType from);

}  // namespace castor::jit
