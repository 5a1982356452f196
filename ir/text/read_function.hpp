// SPDX-License-Identifier: Apache-2.0
// Reading functions.
#pragma once

#include "ir/text/cursor.hpp"
#include "ir/text/text.hpp"

namespace castor::text {

/// One function whose parameters stand here, up to its closing brace, verified; null after a
/// mistake. `name` is the token of its name.
FunctionPtr read_function(Cursor& cursor, const Token& name, const ParseOptions& options);

}  // namespace castor::text
