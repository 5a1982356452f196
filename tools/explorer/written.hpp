// SPDX-License-Identifier: Apache-2.0
// What became of the operations that were written, in the canonical function.
#pragma once

#include <vector>

#include "ir/function.hpp"
#include "tools/explorer/model.hpp"

namespace castor::tools::explorer {

/// For each operation of the canonical function the one of `written` that it came from: the one at
/// the same position of the text, or that gives a result of the same name, or else the one that its
/// result is computed for. None where there is no such operation. Pure.
std::vector<Index> written_operations(const Function& written, const Function& canonical);

/// The lines of the function as it was written, with the canonical operations that each became.
std::vector<WrittenLine> written_lines(const Function& written, const Function& canonical);

}  // namespace castor::tools::explorer
