// SPDX-License-Identifier: Apache-2.0
// Stores of floats as unsigned integers, where each chunk is narrowed on its own.
#pragma once

#include "jit/lane/program.hpp"

namespace castor::jit {

/// Makes conversions of f32 to u8 and u16 that saturate shorter by an instruction: max with 0 turns
/// NaN and negative numbers into 0, and the conversion to unsigned lanes gives the largest number
/// where it overflows, so that only the store's narrowing is left. For targets with AVX-512, and
/// code that stores single chunks: packs of several take lanes as signed.
void store_from_unsigned(LaneProgram& program);

}  // namespace castor::jit
