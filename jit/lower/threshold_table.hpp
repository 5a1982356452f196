// SPDX-License-Identifier: Apache-2.0
// Tables by which 16-bit floats become codes of at most eight bits.
#pragma once

#include <optional>

#include "ir/types/convert_options.hpp"
#include "jit/lane/program.hpp"

namespace castor::jit {

/// The table of a conversion from f16 or bf16. Except for nf4, it is also exact for a bf16 that was
/// made from a wider number by rounding to odd. Nothing where no such table exists, as for options
/// under which codes do not ascend one by one.
std::optional<ThresholdTable> threshold_table(ElementType from, ElementType to,
                                              const ConvertOptions& options);

}  // namespace castor::jit
