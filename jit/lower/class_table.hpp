// SPDX-License-Identifier: Apache-2.0
// Tables by which 16-bit floats become integers of at most four bits.
#pragma once

#include <optional>

#include "ir/types/convert_options.hpp"
#include "jit/lane/program.hpp"

namespace castor::jit {

/// The table of a conversion from f16 or bf16. Nothing where no such table exists, as for options
/// under which a code depends on the last bits of a number.
std::optional<ClassTable> class_table(ElementType from, ElementType to,
                                      const ConvertOptions& options);

}  // namespace castor::jit
