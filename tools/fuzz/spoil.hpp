// SPDX-License-Identifier: Apache-2.0
// Calls that must be refused, made from calls that must not.
#pragma once

#include <optional>
#include <vector>

#include "tools/fuzz/prepared.hpp"

namespace castor::fuzz {

/// The views of one call.
struct Call {
  std::vector<ConstView> inputs;
  std::vector<View> outputs;
};

/// Whether the program asks for a bad call that its tensors can make: one with elements, and for
/// overlaps two tensors that would not be in place of each other.
bool can_spoil(const Prepared& prepared);

/// The call with the view changed that the program's bad call names; nothing where there is none,
/// or where it is an element that is wrong.
std::optional<Call> spoil(const Prepared& prepared, const Call& call);

}  // namespace castor::fuzz
