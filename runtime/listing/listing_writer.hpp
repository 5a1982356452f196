// SPDX-License-Identifier: Apache-2.0
// The function that listing_writer() gives.
#pragma once

#include <castor/observe.hpp>

#include <string>

namespace castor::detail {

/// The annotated listing of a piece of code.
Result<std::string> write_listing(const jit::MachineCode& code);

}  // namespace castor::detail
