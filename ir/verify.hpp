// SPDX-License-Identifier: Apache-2.0
// The rules of the IR.
#pragma once

#include "ir/function.hpp"

namespace castor {

/// Checks a function against every rule; the error says which op or value, what was found and
/// what was expected, with its place in the text where that is known.
Status verify(const Function& function);

/// Checks one tensor type: rank at most max_rank, extents not negative, counts and sizes that fit
/// 63 bits, an element type that castor implements. `what` names the owner in the message.
Status verify_type(const TensorType& type, std::string_view what);

}  // namespace castor
