// SPDX-License-Identifier: Apache-2.0
// The rules of the IR.
#pragma once

#include <cstddef>
#include <string_view>

#include "ir/function.hpp"
#include "ir/verify/limits.hpp"

namespace castor {

/// Checks a function against every rule; the error says which op or value, what was found and
/// what was expected, with its position in the text where that is known.
Status verify(const Function& function);

/// Checks one tensor type: rank at most max_rank, extents not negative, counts and sizes that fit
/// 63 bits, an element type that castor implements. `what` names the owner in the message.
Status verify_type(const TensorType& type, std::string_view what);

/// Checks the declared type of a result against the type that its value has: equal element types,
/// equal ranks, equal fixed extents. An unknown extent on either side is checked when the function
/// is bound. `what` names the result in the message.
Status verify_declared_type(const TensorType& declared, const TensorType& actual,
                            std::string_view what);

/// Whether the text form can write the name: [A-Za-z_][A-Za-z0-9_.$-]*. Functions, unknown
/// dimensions and bound constants have such names.
bool is_identifier(std::string_view name);

/// An identifier, or digits only, such as `0`: the names of values.
bool is_value_name(std::string_view name);

}  // namespace castor
