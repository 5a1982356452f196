// SPDX-License-Identifier: Apache-2.0
// Tables by which 16-bit floats become codes of at most eight bits.
#pragma once

#include <optional>

#include "ir/types/convert_options.hpp"
#include "jit/lane/program.hpp"

namespace castor::jit {

/// The cells of a conversion from f16 or bf16; exact as well, but for nf4, for a bf16 that a wider
/// number was rounded to odd to. Nothing where no such table exists, as for options under which
/// codes do not ascend one by one.
std::optional<CellTable> encoding_cells(ElementType words, ElementType to,
                                        const ConvertOptions& options);

}  // namespace castor::jit
