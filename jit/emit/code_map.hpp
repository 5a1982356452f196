// SPDX-License-Identifier: Apache-2.0
// Nests that make codes of codes: one sub-byte source, one sub-byte sink, and between them no more
// than a function of each code.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "jit/lane/program.hpp"

namespace castor::jit {

/// What a program makes of each code of its only source, in codes of its only sink; nothing for
/// programs of which that is not found out here: those with other operations than loads, stores of
/// low bits, constants, sums, differences, bits and tables of bytes.
std::optional<std::vector<uint8_t>> code_map(const LaneProgram& program);

/// Whether what becomes of a code is the sum, without carries, of what becomes of its bits.
bool moves_bits(const std::vector<uint8_t>& map);

}  // namespace castor::jit
