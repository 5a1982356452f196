// SPDX-License-Identifier: Apache-2.0
// Building any function once more through the C API, op by op.
#pragma once

#include <string>

#include "ir/function.hpp"

namespace castor::test {

/// The text of the function that castor.h's builder gives, or the mistake that it tells. Values
/// keep their names.
std::string text_built_in_c(const Function& function);

}  // namespace castor::test
