// SPDX-License-Identifier: Apache-2.0
// The specification of `convert` (ir/README.md, Convert).
#pragma once

#include "ir/types/convert_options.hpp"
#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// The code in `to` of an element of `from`. The pair admits the options.
Term specified_conversion(const Term& bits, ElementType from, ElementType to,
                          const ConvertOptions& options);

}  // namespace castor::prove
