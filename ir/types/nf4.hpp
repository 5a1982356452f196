// SPDX-License-Identifier: Apache-2.0
// The codebook of nf4: 16 numbers of f32, and the numbers between them at which rounding turns.
#pragma once

#include <array>

namespace castor {

/// The value of each code, ascending. Source: OpenVINO, element type nf4 (after QLoRA, appendix E).
inline constexpr std::array<float, 16> nf4_values = {
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};

/// A number above threshold i, and not above threshold i + 1, becomes code i + 1; a number equal
/// to a threshold takes the lower code. The decimals are rounded to f32, as OpenVINO's are: some
/// are next to the middle of two numbers of f32. Source: as above.
inline constexpr std::array<float, 15> nf4_thresholds = {
    -0.8480964004993439f,  -0.6106329262256622f,  -0.4599952697753906f,   -0.33967943489551544f,
    -0.23460740596055984f, -0.13791173323988914f, -0.045525018125772476f, 0.03979014977812767f,
    0.1202552504837513f,   0.2035212516784668f,   0.2920137718319893f,    0.3893125355243683f,
    0.5016634166240692f,   0.6427869200706482f,   0.8614784181118011f,
};

}  // namespace castor
