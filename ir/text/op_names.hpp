// SPDX-License-Identifier: Apache-2.0
// What to say where the name of an op is expected.
#pragma once

#include <string>
#include <string_view>

namespace castor::text {

/// "an operation such as convert": the names of the op table that are nearest to what was found,
/// if any is near, else all of them.
std::string expected_op(std::string_view found);

}  // namespace castor::text
